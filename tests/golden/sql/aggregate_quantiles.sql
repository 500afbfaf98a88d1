-- Exact medians and percentiles.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query medians
SELECT date_trunc('day', ts) AS d, median(ms) AS m, quantile_cont(ms, 0.25) AS q, percentile_cont(0.9) WITHIN GROUP (ORDER BY ms) AS p FROM log GROUP BY 1

--query discrete
SELECT date_trunc('day', ts) AS d, quantile_disc(n, 0.5) AS m, percentile_disc(0.3) WITHIN GROUP (ORDER BY n) AS p, percentile(n, 0.5) AS q FROM log GROUP BY 1

--query hopping
SELECT window_start, median(n) AS m FROM log GROUP BY HOP(ts, '2 hours', '1 hour')

--plan
-- hopping@1: aggregate HOP(7200000000, 3600000000) by () from log, sub-aggregated, level 1
-- discrete@1: aggregate TUMBLE(1 AS d) by () from log select ts, n, DATE_TRUNC('day', ts) AS #window select ts, n, #window, sub-aggregated, level 1
-- medians@1: aggregate TUMBLE(1 AS d) by () from log select ts, ms, DATE_TRUNC('day', ts) AS #window select ts, ms, #window, sub-aggregated, level 1
-- hopping = hopping@1 select window_start, m
-- discrete = discrete@1
-- medians = medians@1

--input log
-- ts | host | ms | n
-- 2026-01-31 23:59:58 | a | 1.5 | 1
-- 2026-01-31 23:59:59.500 | b | 2.0 | 2
-- 2026-02-01 00:00:00 | a | NULL | 3
-- 2026-02-01 00:00:07 | b | 4.25 | 4
-- ~
-- 2026-02-01 00:59:59 | a | 8.0 | 5
-- 2026-02-01 01:00:00 | NULL | 0.5 | 6
-- 2026-02-28 12:00:00 | b | 3.0 | 7
-- ~
-- 2026-03-29 00:30:00 | a | 2.5 | 8
-- 2026-03-29 01:30:00 | a | 6.0 | 9
-- 2026-03-29 23:00:00 | b | 7.0 | 10

--expect medians
-- d timestamp | m float64 | q float64 | p float64
-- 2026-01-31 00:00:00 | 1.75 | 1.625 | 1.95
-- 2026-02-01 00:00:00 | 4.25 | 2.375 | 7.25
-- 2026-02-28 00:00:00 | 3.0 | 3.0 | 3.0
-- 2026-03-29 00:00:00 | 6.0 | 4.25 | 6.800000000000001

--duckdb medians
SELECT date_trunc('day', ts) AS d, median(ms) AS m, quantile_cont(ms, 0.25) AS q, quantile_cont(ms, 0.9) AS p FROM log GROUP BY 1

--expect discrete
-- d timestamp | m int64 | p int64 | q float64
-- 2026-01-31 00:00:00 | 1 | 1 | 1.5
-- 2026-02-01 00:00:00 | 4 | 4 | 4.5
-- 2026-02-28 00:00:00 | 7 | 7 | 7.0
-- 2026-03-29 00:00:00 | 9 | 8 | 9.0

--duckdb discrete
SELECT date_trunc('day', ts) AS d, quantile_disc(n, 0.5) AS m, quantile_disc(n, 0.3) AS p, quantile_cont(n, 0.5) AS q FROM log GROUP BY 1

--expect hopping
-- window_start timestamp | m float64
-- 2026-01-31 22:00:00 | 1.5
-- 2026-01-31 23:00:00 | 3.0
-- 2026-02-01 00:00:00 | 4.5
-- 2026-02-01 01:00:00 | 6.0
-- 2026-02-28 11:00:00 | 7.0
-- 2026-02-28 12:00:00 | 7.0
-- 2026-03-28 23:00:00 | 8.0
-- 2026-03-29 00:00:00 | 8.5
-- 2026-03-29 01:00:00 | 9.0
-- 2026-03-29 22:00:00 | 10.0
-- 2026-03-29 23:00:00 | 10.0

--duckdb hopping
SELECT ws AS window_start, median(n) AS m FROM (SELECT *, unnest([date_trunc('hour', ts), date_trunc('hour', ts) - INTERVAL 1 HOUR]) AS ws FROM log) GROUP BY 1
