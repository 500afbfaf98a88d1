-- Months differ in length.

--stream log: ts timestamp, host string, ms float64; ordered by ts

--query q
SELECT ts + INTERVAL '1' MONTH AS t FROM log

--fail= Months and years have no fixed length
