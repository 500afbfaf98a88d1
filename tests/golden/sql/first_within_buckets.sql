-- FIRST and LAST follow the time itself within groups by something computed of it.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query days
SELECT date_trunc('day', ts) AS d, first(n) AS a, last(n) AS b, array_agg(n) AS l FROM log GROUP BY 1

--query ends
SELECT window_end, first(n) AS a FROM TUMBLE(log, ts, INTERVAL '1' DAY, INTERVAL '1' HOUR) GROUP BY window_end

--plan
-- days@1: aggregate TUMBLE(1 AS d) by () from log select ts, n, DATE_TRUNC('day', ts) AS #window select ts, n, #window, sub-aggregated, level 1
-- ends@1: aggregate TUMBLE(1 AS window_end) by () from log windows TUMBLE(86400000000, 3600000000) of ts select ts, host, ms, n, window_start, window_end, sub-aggregated, level 1
-- days = days@1
-- ends = ends@1

--input log
-- ts | host | ms | n
-- 2026-01-31 23:59:58 | a | 1.5 | 1
-- 2026-01-31 23:59:59.500 | b | 2.0 | 2
-- 2026-02-01 00:00:07 | b | 4.25 | 4
-- 2026-02-01 00:00:00 | a | NULL | 3
-- ~
-- 2026-02-01 00:59:59 | a | 8.0 | 5
-- 2026-02-01 01:00:00 | NULL | 0.5 | 6
-- 2026-02-28 12:00:00 | b | 3.0 | 7
-- ~
-- 2026-03-29 00:30:00 | a | 2.5 | 8
-- 2026-03-29 01:30:00 | a | 6.0 | 9
-- 2026-03-29 23:00:00 | b | 7.0 | 10

--expect days
-- d timestamp | a int64 | b int64 | l list(int64)
-- 2026-01-31 00:00:00 | 1 | 2 | [1, 2]
-- 2026-02-01 00:00:00 | 3 | 6 | [3, 4, 5, 6]
-- 2026-02-28 00:00:00 | 7 | 7 | [7]
-- 2026-03-29 00:00:00 | 8 | 10 | [8, 9, 10]

--duckdb days
SELECT date_trunc('day', ts) AS d, first(n ORDER BY ts) AS a, last(n ORDER BY ts) AS b, list(n ORDER BY ts) AS l FROM log GROUP BY 1

--expect ends
-- window_end timestamp | a int64
-- 2026-02-01 01:00:00 | 1
-- 2026-02-02 01:00:00 | 6
-- 2026-03-01 01:00:00 | 7
-- 2026-03-29 01:00:00 | 8
-- 2026-03-30 01:00:00 | 9

--duckdb ends
SELECT time_bucket(INTERVAL '1 day', ts, TIMESTAMP '2000-01-01 01:00:00') + INTERVAL 1 DAY AS window_end, first(n ORDER BY ts) AS a FROM log GROUP BY 1
