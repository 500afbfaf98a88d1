-- LN and LOG10; of 0 they are minus infinity, of less not a number.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, LN(f) AS l, LOG10(ABS(i)) AS t FROM nums

--plan
-- q = nums select time, LN(f) AS l, LOG10(ABS(i)) AS t

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
-- time int64 | l float64 | t float64
-- 1 | 0.9162907318741551 | 0.8450980400142568
-- 2 | nan | 0.8450980400142568
-- 3 | -inf | -inf
-- 4 | NULL | NULL
-- 5 | 7.118476228297786 | 2.0
-- 6 | -1.3862943611198906 | 0.9542425094393249

--duckdb q
same
