-- TUMBLE gives the borders of its windows.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT window_start, window_end, srcIP, MAX(len) AS largest
FROM tcp
GROUP BY TUMBLE(time, 60), srcIP

--plan
-- q@1: aggregate TUMBLE(60) by (srcIP) from tcp, sub-aggregated, level 1
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
-- window_start int64 | window_end int64 | srcIP int64 | largest int64
-- 0 | 60 | 10 | 1500
-- 0 | 60 | 11 | 50
-- 60 | 120 | 10 | 40
-- 60 | 120 | 11 | 700
-- 120 | 180 | 10 | 80
-- 120 | 180 | 12 | NULL

--duckdb q
SELECT time // 60 * 60 AS window_start, (time // 60 + 1) * 60 AS window_end, srcIP, max(len) AS largest FROM tcp GROUP BY ALL
