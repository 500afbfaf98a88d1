-- Functions of numbers.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, ABS(i) AS a, SIGN(f) AS s, FLOOR(f) AS fl, CEIL(f) AS ce, SQRT(ABS(f)) AS r, POWER(f, 2) AS p, EXP(f / 1000) AS e FROM nums

--plan
-- q = nums select time, ABS(i) AS a, SIGN(f) AS s, FLOOR(f) AS fl, CEIL(f) AS ce, SQRT(ABS(f)) AS r, POWER(f, 2) AS p, EXP(f / 1000) AS e

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
-- time int64 | a int64 | s int64 | fl float64 | ce float64 | r float64 | p float64 | e float64
-- 1 | 7 | 1 | 2.0 | 3.0 | 1.5811388300841898 | 6.25 | 1.0025031276057952
-- 2 | 7 | -1 | -3.0 | -2.0 | 1.5811388300841898 | 6.25 | 0.9975031223974601
-- 3 | 0 | 0 | 0.0 | 0.0 | 0.0 | 0.0 | 1.0
-- 4 | NULL | NULL | NULL | NULL | NULL | NULL | NULL
-- 5 | 100 | 1 | 1234.0 | 1235.0 | 35.13641700572214 | 1524157.65279684 | 3.4368927746013367
-- 6 | 9 | 1 | 0.0 | 1.0 | 0.5 | 0.0625 | 1.0002500312526044

--duckdb q
same
