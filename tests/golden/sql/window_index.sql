-- Flows per minute: time/60 numbers the minutes, and the number is a column of the result.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP

--plan
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- flows = flows@1

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

--expect flows
-- tb int64 | srcIP int64 | destIP int64 | cnt int64 | bytes int64
-- 0 | 10 | 20 | 2 | 300
-- 0 | 10 | 21 | 1 | 1500
-- 0 | 11 | 20 | 1 | 50
-- 1 | 10 | 20 | 1 | 40
-- 1 | 11 | 20 | 1 | 60
-- 1 | 11 | 22 | 1 | 700
-- 2 | 10 | 20 | 1 | 80
-- 2 | 12 | 20 | 1 | NULL

--duckdb flows
SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt, sum(len) AS bytes FROM tcp GROUP BY ALL
