-- GROUP BY 1, 2: the columns of the SELECT list by their place.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time/60 AS tb, srcIP & 0xFE AS net, COUNT(*) AS n FROM tcp GROUP BY 1, 2

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP & 254) from tcp, sub-aggregated, level 1
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
-- tb int64 | net int64 | n int64
-- 0 | 10 | 4
-- 1 | 10 | 3
-- 2 | 10 | 1
-- 2 | 12 | 1

--duckdb q
SELECT time // 60 AS tb, srcIP & 254 AS net, count(*) AS n FROM tcp GROUP BY 1, 2
