-- OVER the results of an aggregate: a mean that moves along.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP, AVG(n) OVER (PARTITION BY srcIP ORDER BY tb ROWS 1 PRECEDING) AS smooth
FROM (SELECT tb, srcIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP) AS f

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q@2: history 2 by (srcIP) from q@1, level 2
-- q = q@2 select tb, srcIP, "AVG(n) OVER" AS smooth

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
-- tb int64 | srcIP int64 | smooth float64
-- 0 | 10 | 3.0
-- 0 | 11 | 1.0
-- 1 | 10 | 2.0
-- 1 | 11 | 1.5
-- 2 | 10 | 1.0
-- 2 | 12 | 1.0

--duckdb q
SELECT tb, srcIP, avg(n) OVER (PARTITION BY srcIP ORDER BY tb ROWS 1 PRECEDING) AS smooth
FROM (SELECT time // 60 AS tb, srcIP, count(*) AS n FROM tcp GROUP BY ALL)
