-- All rows are left out: no group, not even one with a count of 0.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, COUNT(*) AS n FROM tcp WHERE len < 0 GROUP BY time/60 AS tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by () from tcp where len < 0, sub-aggregated, level 1
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
-- tb int64 | n int64

--duckdb q
SELECT time // 60 AS tb, count(*) AS n FROM tcp WHERE len < 0 GROUP BY ALL
