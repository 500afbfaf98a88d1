-- HOP with a slide above its size leaves rows out.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT window_start, window_end, COUNT(*) AS n FROM tcp GROUP BY HOP(time, 10, 60)

--plan
-- q@1: aggregate HOP(10, 60) by () from tcp, sub-aggregated, level 1
-- q = q@1

--input tcp
-- time | srcIP | destIP | len | flags
-- 1 | 10 | 20 | 100 | 2
-- 5 | 10 | 20 | 200 | 16
-- 30 | 11 | 20 | 50 | 1
-- ~
-- 59 | 10 | 21 | 1500 | 24
-- 60 | 10 | 20 | 40 | 2
-- 75 | 11 | 20 | 60 | 18
-- ~
-- 118 | 11 | 22 | 700 | 16
-- 121 | 10 | 20 | 80 | 17
-- 130 | 12 | 20 | NULL | NULL

--expect q
-- window_start int64 | window_end int64 | n int64
-- 0 | 10 | 2
-- 60 | 70 | 1
-- 120 | 130 | 1

--duckdb q
SELECT time // 60 * 60 AS window_start, time // 60 * 60 + 10 AS window_end, count(*) AS n FROM tcp
WHERE time % 60 < 10 GROUP BY ALL
