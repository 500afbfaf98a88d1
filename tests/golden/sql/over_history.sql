-- OVER the last rows of a group: every row with a value over its history.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, srcIP, SUM(len) OVER (PARTITION BY srcIP ORDER BY time ROWS 1 PRECEDING) AS last2,
       COUNT(*) OVER (PARTITION BY srcIP ORDER BY time ROWS 1 PRECEDING) AS n FROM tcp

--plan
-- q@1: history 2 by (srcIP) from tcp, level 1
-- q = q@1 select time, srcIP, "SUM(len) OVER" AS last2, "COUNT(*) OVER" AS n

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
-- time int64 | srcIP int64 | last2 int64 | n int64
-- 1 | 10 | 100 | 1
-- 5 | 10 | 300 | 2
-- 30 | 11 | 50 | 1
-- 59 | 10 | 1700 | 2
-- 60 | 10 | 1540 | 2
-- 75 | 11 | 110 | 2
-- 118 | 11 | 760 | 2
-- 121 | 10 | 120 | 2
-- 130 | 12 | NULL | 1

--duckdb q
same
