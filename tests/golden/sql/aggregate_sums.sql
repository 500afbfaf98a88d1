-- SUM of integers is an integer, SUM of floats a float, AVG always a float.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT tb, SUM(i) AS si, SUM(f) AS sf, AVG(i) AS ai, AVG(f) AS af FROM nums GROUP BY time/3 AS tb

--plan
-- q@1: aggregate TUMBLE(3 AS tb) by () from nums, sub-aggregated, level 1
-- q = q@1

--input nums
-- time | i | f
-- 1 | 7 | 2.5
-- 2 | -7 | -2.5
-- 3 | 0 | 0.0
-- ~
-- 4 | NULL | NULL
-- 5 | 100 | 1234.5678
-- 6 | 9 | 0.25

--expect q
-- tb int64 | si int64 | sf float64 | ai float64 | af float64
-- 0 | 0 | 0.0 | 0.0 | 0.0
-- 1 | 100 | 1234.5678 | 50.0 | 617.2839
-- 2 | 9 | 0.25 | 9.0 | 0.25

--duckdb q
SELECT time // 3 AS tb, sum(i) AS si, sum(f) AS sf, avg(i) AS ai, avg(f) AS af FROM nums GROUP BY ALL
