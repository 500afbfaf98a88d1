-- A time is compared with a time.

--stream log: ts timestamp, host string, ms float64; ordered by ts

--query q
SELECT host FROM log WHERE ts > 5

--fail= compares timestamp
--fail= TIMESTAMP '2026-01-31 12:00:00' in SQL
