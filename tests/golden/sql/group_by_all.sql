-- GROUP BY ALL: every column of the SELECT list without an aggregate.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time/60 AS tb, destIP, COUNT(*) + 1 AS n FROM tcp GROUP BY ALL

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (destIP) from tcp, sub-aggregated, level 1
-- q = q@1 select tb, destIP, "COUNT(*)" + 1 AS n

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
-- tb int64 | destIP int64 | n int64
-- 0 | 20 | 4
-- 0 | 21 | 2
-- 1 | 20 | 3
-- 1 | 22 | 2
-- 2 | 20 | 3

--duckdb q
SELECT time // 60 AS tb, destIP, count(*) + 1 AS n FROM tcp GROUP BY ALL
