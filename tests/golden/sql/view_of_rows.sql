-- A query without state, read by two others.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query large
SELECT time, srcIP, len FROM tcp WHERE len >= 80

--query sources
SELECT tb, COUNT(DISTINCT srcIP) AS n FROM large GROUP BY time/60 AS tb

--query top
SELECT tb, MAX(len) AS len FROM large GROUP BY time/60 AS tb

--plan
-- sources@1: aggregate TUMBLE(60 AS tb) by () from tcp where len >= 80 select time, srcIP, len, sub-aggregated, level 1
-- top@1: aggregate TUMBLE(60 AS tb) by () from tcp where len >= 80 select time, srcIP, len, sub-aggregated, level 1
-- large = tcp where len >= 80 select time, srcIP, len
-- sources = sources@1
-- top = top@1 select tb, "MAX(len)" AS len

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

--expect large
-- time int64 | srcIP int64 | len int64
-- 1 | 10 | 100
-- 5 | 10 | 200
-- 59 | 10 | 1500
-- 118 | 11 | 700
-- 121 | 10 | 80

--expect sources
-- tb int64 | n int64
-- 0 | 1
-- 1 | 1
-- 2 | 1

--expect top
-- tb int64 | len int64
-- 0 | 1500
-- 1 | 700
-- 2 | 80

--duckdb large
same

--duckdb sources
SELECT time // 60 AS tb, count(DISTINCT srcIP) AS n FROM tcp WHERE len >= 80 GROUP BY ALL

--duckdb top
SELECT time // 60 AS tb, max(len) AS len FROM tcp WHERE len >= 80 GROUP BY ALL
