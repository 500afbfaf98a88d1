-- The row before: FIRST over two rows, which for the first row of a group is its own.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, srcIP, time - FIRST(time) OVER (PARTITION BY srcIP ORDER BY time ROWS 1 PRECEDING) AS gap FROM tcp

--plan
-- q@1: history 2 by (srcIP) from tcp, level 1
-- q = q@1 select time, srcIP, time - "FIRST(time) OVER" AS gap

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
-- time int64 | srcIP int64 | gap int64
-- 1 | 10 | 0
-- 5 | 10 | 4
-- 30 | 11 | 0
-- 59 | 10 | 54
-- 60 | 10 | 1
-- 75 | 11 | 45
-- 118 | 11 | 43
-- 121 | 10 | 61
-- 130 | 12 | 0

--duckdb q
SELECT time, srcIP, coalesce(time - lag(time) OVER (PARTITION BY srcIP ORDER BY time), 0) AS gap FROM tcp
