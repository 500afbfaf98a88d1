-- The operator ? of PostgreSQL.

--stream tcp: time int64, len int64, name string; ordered by time

--query q
SELECT time FROM tcp WHERE name ? 'a'

--fail= write j ->> 'name' IS NOT NULL
