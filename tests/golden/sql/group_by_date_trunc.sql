-- Calendar units as windows: what date_trunc gives tells the time.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query hours
SELECT date_trunc('hour', ts) AS h, count(*) AS c FROM log GROUP BY date_trunc('hour', ts)

--query days
SELECT date_trunc('day', ts) AS d, host, sum(ms) AS s FROM log GROUP BY 1, 2

--query months
SELECT date_trunc('month', ts) AS m, count(*) AS c, max(n) AS most FROM log GROUP BY m

--query quarters
SELECT date_trunc('quarter', ts) AS q, avg(ms) AS a FROM log GROUP BY ALL

--query weeks_of_days
SELECT date_trunc('week', d) AS w, sum(c) AS c FROM (SELECT date_trunc('day', ts) AS d, count(*) AS c FROM log GROUP BY 1) GROUP BY 1

--plan
-- days@1: aggregate TUMBLE(1 AS d) by (host) from log select ts, host, ms, DATE_TRUNC('day', ts) AS #window select ts, host, ms, #window, sub-aggregated, level 1
-- hours@1: aggregate TUMBLE(1 AS h) by () from log select ts, DATE_TRUNC('hour', ts) AS #window select ts, #window, sub-aggregated, level 1
-- months@1: aggregate TUMBLE(1 AS m) by () from log select ts, n, DATE_TRUNC('month', ts) AS #window select ts, n, #window, sub-aggregated, level 1
-- quarters@1: aggregate TUMBLE(1 AS q) by () from log select ts, ms, DATE_TRUNC('quarter', ts) AS #window select ts, ms, #window, sub-aggregated, level 1
-- weeks_of_days@1: aggregate TUMBLE(1 AS d) by () from log select ts, DATE_TRUNC('day', ts) AS #window select ts, #window, sub-aggregated, level 1
-- weeks_of_days@2: aggregate TUMBLE(1 AS w) by () from weeks_of_days@1 select d, c, DATE_TRUNC('week', d) AS #window select d, c, #window, sub-aggregated, level 2
-- days = days@1
-- hours = hours@1
-- months = months@1
-- quarters = quarters@1
-- weeks_of_days = weeks_of_days@2 select w, "SUM(c)" AS c

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

--expect hours
-- h timestamp | c int64
-- 2026-01-31 23:00:00 | 2
-- 2026-02-01 00:00:00 | 3
-- 2026-02-01 01:00:00 | 1
-- 2026-02-28 12:00:00 | 1
-- 2026-03-29 00:00:00 | 1
-- 2026-03-29 01:00:00 | 1
-- 2026-03-29 23:00:00 | 1

--duckdb hours
same

--expect days
-- d timestamp | host string | s float64
-- 2026-01-31 00:00:00 | a | 1.5
-- 2026-01-31 00:00:00 | b | 2.0
-- 2026-02-01 00:00:00 | a | 8.0
-- 2026-02-01 00:00:00 | b | 4.25
-- 2026-02-01 00:00:00 | NULL | 0.5
-- 2026-02-28 00:00:00 | b | 3.0
-- 2026-03-29 00:00:00 | a | 8.5
-- 2026-03-29 00:00:00 | b | 7.0

--duckdb days
same

--expect months
-- m timestamp | c int64 | most int64
-- 2026-01-01 00:00:00 | 2 | 2
-- 2026-02-01 00:00:00 | 5 | 7
-- 2026-03-01 00:00:00 | 3 | 10

--duckdb months
same

--expect quarters
-- q timestamp | a float64
-- 2026-01-01 00:00:00 | 3.861111111111111

--duckdb quarters
same

--expect weeks_of_days
-- w timestamp | c int64
-- 2026-01-26 00:00:00 | 6
-- 2026-02-23 00:00:00 | 1
-- 2026-03-23 00:00:00 | 3

--duckdb weeks_of_days
same
