-- HOP: a window of 60 every 30, so every row is in two.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT window_start, srcIP, COUNT(*) AS n FROM tcp GROUP BY HOP(time, 60, 30), srcIP

--plan
-- q@1: aggregate HOP(60, 30) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1 select window_start, srcIP, n

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
-- window_start int64 | srcIP int64 | n int64
-- -30 | 10 | 2
-- 0 | 10 | 3
-- 0 | 11 | 1
-- 30 | 10 | 2
-- 30 | 11 | 2
-- 60 | 10 | 1
-- 60 | 11 | 2
-- 90 | 10 | 1
-- 90 | 11 | 1
-- 90 | 12 | 1
-- 120 | 10 | 1
-- 120 | 12 | 1

--duckdb q
SELECT s AS window_start, srcIP, count(*) AS n FROM tcp, range(-60, 200, 30) r(s)
WHERE time >= s AND time < s + 60 GROUP BY ALL
