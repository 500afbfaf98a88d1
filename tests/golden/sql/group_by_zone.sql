-- Days of a time zone begin at its midnight, on days with a change of clocks too.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query days
SELECT date_trunc('day', ts, 'Europe/Berlin') AS d, count(*) AS c FROM log GROUP BY 1

--query buckets
SELECT time_bucket('1 day', ts, 'America/New_York') AS d, sum(n) AS s FROM log GROUP BY 1

--query local
SELECT date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') AS d, count(*) AS c FROM log GROUP BY 1

--query shifted
SELECT window_start, count(*) AS c FROM log GROUP BY TUMBLE(ts, '1 day', '6 hours')

--plan
-- buckets@1: aggregate TUMBLE(1 AS d) by () from log select ts, n, DATE_TRUNC('day', ts AT TIME ZONE 'UTC', 'America/New_York') AT TIME ZONE 'UTC' AS #window select ts, n, #window, sub-aggregated, level 1
-- days@1: aggregate TUMBLE(1 AS d) by () from log select ts, DATE_TRUNC('day', ts AT TIME ZONE 'UTC', 'Europe/Berlin') AT TIME ZONE 'UTC' AS #window select ts, #window, sub-aggregated, level 1
-- local@1: aggregate TUMBLE(1 AS d) by () from log select ts, DATE_TRUNC('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') AS #window select ts, #window, sub-aggregated, level 1
-- shifted@1: aggregate TUMBLE(1 AS window_start) by (window_end) from log windows TUMBLE(86400000000, 21600000000) of ts select ts, host, ms, n, window_start, window_end, sub-aggregated, level 1
-- buckets = buckets@1
-- days = days@1
-- local = local@1
-- shifted = shifted@1 select window_start, c

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
-- d timestamp | c int64
-- 2026-01-31 23:00:00 | 6
-- 2026-02-27 23:00:00 | 1
-- 2026-03-28 23:00:00 | 2
-- 2026-03-29 22:00:00 | 1

--duckdb days
SELECT (date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'UTC' AS d, count(*) AS c FROM log GROUP BY 1

--expect buckets
-- d timestamp | s int64
-- 2026-01-31 05:00:00 | 21
-- 2026-02-28 05:00:00 | 7
-- 2026-03-28 04:00:00 | 17
-- 2026-03-29 04:00:00 | 10

--duckdb buckets
SELECT (date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AT TIME ZONE 'America/New_York') AT TIME ZONE 'UTC' AS d, sum(n) AS s FROM log GROUP BY 1

--expect local
-- d timestamp | c int64
-- 2026-02-01 00:00:00 | 6
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 2
-- 2026-03-30 00:00:00 | 1

--duckdb local
same

--expect shifted
-- window_start timestamp | c int64
-- 2026-01-31 06:00:00 | 6
-- 2026-02-28 06:00:00 | 1
-- 2026-03-28 06:00:00 | 2
-- 2026-03-29 06:00:00 | 1

--duckdb shifted
SELECT time_bucket(INTERVAL '1 day', ts, TIMESTAMP '2000-01-01 06:00:00') AS window_start, count(*) AS c FROM log GROUP BY 1
