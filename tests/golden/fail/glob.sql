-- GLOB.

--stream tcp: time int64, len int64, name string; ordered by time

--query q
SELECT time FROM tcp WHERE name GLOB 'a*'

--fail= GLOB is not available: use LIKE or REGEXP_MATCHES
