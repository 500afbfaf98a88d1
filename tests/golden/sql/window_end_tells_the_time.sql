-- A sub-query that keeps window_end alone still has an ordered attribute.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query ends
SELECT d, sum(c) AS c FROM (SELECT window_end AS e, count(*) AS c FROM log GROUP BY TUMBLE(ts, '1 hour')) GROUP BY date_trunc('day', e) AS d

--query moved
SELECT date_trunc('day', t) AS d, count(*) AS c FROM (SELECT ts + INTERVAL '6' HOUR AS t FROM log) GROUP BY 1

--plan
-- moved@1: aggregate TUMBLE(1 AS d) by () from log select ts + INTERVAL '6:00:00' AS t select t, DATE_TRUNC('day', t) AS #window select t, #window, sub-aggregated, level 1
-- ends@1: aggregate TUMBLE(3600000000) by () from log, sub-aggregated, level 1
-- ends@2: aggregate TUMBLE(1 AS d) by () from ends@1 select window_end AS e, c select e, c, DATE_TRUNC('day', e) AS #window select e, c, #window, sub-aggregated, level 2
-- moved = moved@1
-- ends = ends@2 select d, "SUM(c)" AS c

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

--expect ends
-- d timestamp | c int64
-- 2026-02-01 00:00:00 | 6
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 2
-- 2026-03-30 00:00:00 | 1

--duckdb ends
SELECT date_trunc('day', e) AS d, sum(c) AS c FROM (SELECT date_trunc('hour', ts) + INTERVAL 1 HOUR AS e, count(*) AS c FROM log GROUP BY 1) GROUP BY 1

--expect moved
-- d timestamp | c int64
-- 2026-02-01 00:00:00 | 6
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 2
-- 2026-03-30 00:00:00 | 1

--duckdb moved
same
