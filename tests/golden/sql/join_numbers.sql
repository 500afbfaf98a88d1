-- Whole numbers meet fractions of the same value.

--stream a: time int64, k int64; ordered by time
--stream b: time int64, k float64; ordered by time

--query q
SELECT a.time, a.k, b.time AS other, b.k AS fraction FROM a FULL JOIN b ON a.k = b.k AND a.time/10 = b.time/10

--plan
-- q@1: FULL JOIN ON CAST(k AS float64) = CAST(k AS float64) AND time // 10 = time // 10 AS b by (CAST(k AS float64)) = (CAST(k AS float64)) from a and b, level 1
-- q = q@1 select time, k, time_b AS other, k_b AS fraction

--input a
-- time | k
-- 1 | 1
-- 2 | 2
-- 3 | 0
-- ~
-- 12 | 1
-- 13 | NULL

--input b
-- time | k
-- 1 | 1.0
-- 2 | 2.5
-- 3 | -0.0
-- ~
-- 11 | 1.0
-- 14 | NULL

--expect q
-- time int64 | k int64 | other int64 | fraction float64
-- 1 | 1 | 1 | 1.0
-- 2 | 2 | NULL | NULL
-- 3 | 0 | 3 | -0.0
-- 12 | 1 | 11 | 1.0
-- 13 | NULL | NULL | NULL
-- NULL | NULL | 2 | 2.5
-- NULL | NULL | 14 | NULL

--duckdb q
SELECT a.time, a.k, b.time AS other, b.k AS fraction FROM a FULL JOIN b ON a.k = b.k AND a.time // 10 = b.time // 10
