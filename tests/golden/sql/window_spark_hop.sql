-- Spark's window() with a slide is HOP.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY window(time, 60, 20)

--plan
-- q@1: aggregate HOP(60, 20) by () from tcp, sub-aggregated, level 1
-- q = q@1 select window_start, n

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
-- window_start int64 | n int64
-- -40 | 2
-- -20 | 3
-- 0 | 4
-- 20 | 4
-- 40 | 3
-- 60 | 3
-- 80 | 3
-- 100 | 3
-- 120 | 2

--duckdb q
SELECT s AS window_start, count(*) AS n FROM tcp, range(-60, 200, 20) r(s)
WHERE time >= s AND time < s + 60 GROUP BY ALL
