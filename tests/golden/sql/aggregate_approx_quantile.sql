-- APPROX_QUANTILE: a value of the group near the fraction asked for.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, APPROX_QUANTILE(len, 0.5) AS mid, APPROX_QUANTILE(len, 1.0) AS top FROM tcp GROUP BY time/60 AS tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
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
-- tb int64 | mid float64 | top float64
-- 0 | 200.0 | 1500.0
-- 1 | 60.0 | 700.0
-- 2 | 80.0 | 80.0
