-- GREATEST and LEAST pass over NULL.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, GREATEST(i, time, 3) AS g, LEAST(i, time) AS l, GREATEST(f, NULL) AS f FROM nums

--plan
-- q = nums select time, GREATEST(i, time, 3) AS g, LEAST(i, time) AS l, GREATEST(f, NULL) AS f

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
-- time int64 | g int64 | l int64 | f float64
-- 1 | 7 | 1 | 2.5
-- 2 | 3 | -7 | -2.5
-- 3 | 3 | 0 | 0.0
-- 4 | 4 | 4 | NULL
-- 5 | 100 | 5 | 1234.5678
-- 6 | 9 | 6 | 0.25

--duckdb q
same
