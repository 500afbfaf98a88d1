-- A key may be computed, and the SELECT list may compute with it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT (srcIP % 2) * 10 AS odd, COUNT(*) AS n FROM tcp GROUP BY TUMBLE(time, 200), srcIP % 2

--plan
-- q@1: aggregate TUMBLE(200) by (srcIP % 2) from tcp, sub-aggregated, level 1
-- q = q@1 select "srcIP % 2" * 10 AS odd, n

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
-- odd int64 | n int64
-- 0 | 6
-- 10 | 3

--duckdb q
SELECT (srcIP % 2) * 10 AS odd, count(*) AS n FROM tcp GROUP BY srcIP % 2
