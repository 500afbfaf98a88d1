-- OVER without PARTITION BY: the last rows of all.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, len, MAX(len) OVER (ORDER BY time ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) - len AS below FROM tcp

--plan
-- q@1: history 3 by () from tcp, level 1
-- q = q@1 select time, len, "MAX(len) OVER" - len AS below

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
-- time int64 | len int64 | below int64
-- 1 | 100 | 0
-- 5 | 200 | 0
-- 30 | 50 | 150
-- 59 | 1500 | 0
-- 60 | 40 | 1460
-- 75 | 60 | 1440
-- 118 | 700 | 0
-- 121 | 80 | 620
-- 130 | NULL | NULL

--duckdb q
same
