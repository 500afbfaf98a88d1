-- Months differ in length.

--stream log: ts timestamp, host string, ms float64; ordered by ts

--query q
SELECT count(*) AS n FROM log GROUP BY TUMBLE(ts, INTERVAL '1' MONTH)

--fail= Months and years have no fixed length: DATE_TRUNC('month', ts) makes windows of them
