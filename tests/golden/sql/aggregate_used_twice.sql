-- An aggregate that is a column and part of another is computed once; names of columns may change places.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, SUM(len) / COUNT(*) AS mean, COUNT(*) AS n, COUNT(*) AS again, MAX(len) AS len, srcIP AS destIP,
       MIN(destIP) AS srcIP
FROM tcp GROUP BY time/60 AS tb, srcIP HAVING n > 1 OR mean > 75

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1 where (n > 1) | (("SUM(len)" // n) > 75) select tb, "SUM(len)" // n AS mean, n, n AS again, "MAX(len)" AS len, destIP, "MIN(destIP)" AS srcIP

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
-- tb int64 | mean int64 | n int64 | again int64 | len int64 | destIP int64 | srcIP int64
-- 0 | 600 | 3 | 3 | 1500 | 10 | 20
-- 1 | 380 | 2 | 2 | 700 | 11 | 20
-- 2 | 80 | 1 | 1 | 80 | 10 | 20

--duckdb q
SELECT time // 60 AS tb, sum(len) // count(*) AS mean, count(*) AS n, count(*) AS again, max(len) AS len,
  srcIP AS destIP, min(destIP) AS srcIP FROM tcp GROUP BY time // 60, tcp.srcIP HAVING count(*) > 1 OR sum(len) // count(*) > 75
