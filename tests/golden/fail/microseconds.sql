-- A timestamp is not divided.

--stream log: ts timestamp, host string, ms float64; ordered by ts

--query q
SELECT COUNT(*) AS n FROM log GROUP BY ts/60 AS tb

--fail= character 40: ts is a time and cannot be divided: a window of it is TUMBLE(ts, '1 minute')
