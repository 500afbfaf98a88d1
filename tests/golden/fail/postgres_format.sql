-- A letter that is not known in a format of PostgreSQL's.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query q
SELECT to_char(ts, 'YYYY-WW') AS s FROM log

--fail= the format 'YYYY-WW' has 'WW', which is not known; expected YYYY, YY, MM, DDD, DD, HH24,
