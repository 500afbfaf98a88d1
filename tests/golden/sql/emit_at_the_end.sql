-- EMIT ON WINDOW CLOSE and EMIT FINAL say what is so anyway.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query closed
SELECT window_start, count(*) AS c FROM TUMBLE(log, ts, INTERVAL '1' DAY) GROUP BY window_start EMIT ON WINDOW CLOSE

--query final
SELECT date_trunc('day', ts) AS d, count(*) AS c FROM log GROUP BY 1 EMIT FINAL;

--plan
-- closed@1: aggregate TUMBLE(86400000000) by () from log, sub-aggregated, level 1
-- final@1: aggregate TUMBLE(1 AS d) by () from log select ts, DATE_TRUNC('day', ts) AS #window select ts, #window, sub-aggregated, level 1
-- closed = closed@1 select window_start, c
-- final = final@1

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

--expect closed
-- window_start timestamp | c int64
-- 2026-01-31 00:00:00 | 2
-- 2026-02-01 00:00:00 | 4
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 3

--expect final
-- d timestamp | c int64
-- 2026-01-31 00:00:00 | 2
-- 2026-02-01 00:00:00 | 4
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 3
