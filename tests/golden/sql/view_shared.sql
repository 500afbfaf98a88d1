-- Two queries that begin alike share the work: there is one subquery below both.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query mean
SELECT tb, srcIP, SUM(len) / COUNT(*) AS mean FROM tcp GROUP BY time/60 AS tb, srcIP

--query busy
SELECT tb, srcIP FROM (SELECT tb, srcIP, SUM(len) / COUNT(*) AS mean FROM tcp GROUP BY time/60 AS tb, srcIP) WHERE mean > 100

--plan
-- mean@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- mean = mean@1 select tb, srcIP, "SUM(len)" // "COUNT(*)" AS mean
-- busy = mean@1 select tb, srcIP, "SUM(len)" // "COUNT(*)" AS mean where mean > 100 select tb, srcIP

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

--expect mean
-- tb int64 | srcIP int64 | mean int64
-- 0 | 10 | 600
-- 0 | 11 | 50
-- 1 | 10 | 40
-- 1 | 11 | 380
-- 2 | 10 | 80
-- 2 | 12 | NULL

--expect busy
-- tb int64 | srcIP int64
-- 0 | 10
-- 1 | 11

--duckdb mean
SELECT time // 60 AS tb, srcIP, sum(len) // count(*) AS mean FROM tcp GROUP BY ALL

--duckdb busy
SELECT time // 60 AS tb, srcIP FROM tcp GROUP BY ALL HAVING sum(len) // count(*) > 100
