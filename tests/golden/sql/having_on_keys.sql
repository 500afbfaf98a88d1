-- HAVING may use keys, names of the SELECT list and aggregates that are not selected.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP FROM tcp GROUP BY time/60 AS tb, srcIP HAVING srcIP > 10 OR MAX(len) >= 1500

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1 where (srcIP > 10) | ("MAX(len)" >= 1500) select tb, srcIP

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
-- tb int64 | srcIP int64
-- 0 | 10
-- 0 | 11
-- 1 | 11
-- 2 | 12

--duckdb q
SELECT time // 60 AS tb, srcIP FROM tcp GROUP BY ALL HAVING srcIP > 10 OR max(len) >= 1500
