-- An input may have a name of its own, and columns may be qualified with it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT t.tb, t.srcIP, t.n + 1 AS more
FROM (SELECT p.time/60 AS tb, p.srcIP, COUNT(*) AS n FROM tcp AS p GROUP BY p.time/60, p.srcIP) t
WHERE t.srcIP <> 12

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1 where srcIP <> 12 select tb, srcIP, n + 1 AS more

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
-- tb int64 | srcIP int64 | more int64
-- 0 | 10 | 4
-- 0 | 11 | 2
-- 1 | 10 | 2
-- 1 | 11 | 3
-- 2 | 10 | 2

--duckdb q
SELECT time // 60 AS tb, srcIP, count(*) + 1 AS more FROM tcp WHERE srcIP <> 12 GROUP BY ALL
