-- A text of the time that tells its day, month or hour is a window of it.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query days
SELECT to_char(ts, 'YYYY-MM-DD') AS day, count(*) AS c FROM log GROUP BY to_char(ts, 'YYYY-MM-DD')

--query months dialect=spark
SELECT host, date_format(ts, 'yyyy-MM') AS m, max(n) AS most FROM log GROUP BY host, date_format(ts, 'yyyy-MM')

--query hours
SELECT strftime(ts, '%F %H') AS h, sum(n) AS s FROM log GROUP BY 1

--plan
-- days@1: aggregate TUMBLE(1 AS #window) by (STRFTIME(ts, '%Y-%m-%d')) from log select ts, DATE_TRUNC('day', ts) AS #window select ts, #window, sub-aggregated, level 1
-- hours@1: aggregate TUMBLE(1 AS #window) by (STRFTIME(ts, '%Y-%m-%d %H')) from log select ts, n, DATE_TRUNC('hour', ts) AS #window select ts, n, #window, sub-aggregated, level 1
-- months@1: aggregate TUMBLE(1 AS #window) by (host) from log select ts, host, n, DATE_TRUNC('month', ts) AS #window select ts, host, n, #window, sub-aggregated, level 1
-- days = days@1 select day, c
-- hours = hours@1 select h, s
-- months = months@1 select host, m, most

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

--expect days
-- day string | c int64
-- 2026-01-31 | 2
-- 2026-02-01 | 4
-- 2026-02-28 | 1
-- 2026-03-29 | 3

--duckdb days
SELECT strftime(ts, '%Y-%m-%d') AS day, count(*) AS c FROM log GROUP BY 1

--expect months
-- host string | m string | most int64
-- a | 2026-01 | 1
-- a | 2026-02 | 5
-- a | 2026-03 | 9
-- b | 2026-01 | 2
-- b | 2026-02 | 7
-- b | 2026-03 | 10
-- NULL | 2026-02 | 6

--duckdb months
SELECT host, strftime(ts, '%Y-%m') AS m, max(n) AS most FROM log GROUP BY 1, 2

--expect hours
-- h string | s int64
-- 2026-01-31 23 | 3
-- 2026-02-01 00 | 12
-- 2026-02-01 01 | 6
-- 2026-02-28 12 | 7
-- 2026-03-29 00 | 8
-- 2026-03-29 01 | 9
-- 2026-03-29 23 | 10

--duckdb hours
SELECT strftime(ts, '%Y-%m-%d %H') AS h, sum(n) AS s FROM log GROUP BY 1
