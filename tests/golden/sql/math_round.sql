-- ROUND goes to the even neighbour of a half: there it differs from DuckDB's round.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, ROUND(f) AS r, ROUND(f, 2) AS cents, ROUND(i) AS whole FROM nums

--plan
-- q = nums select time, ROUND(f) AS r, ROUND(f, 2) AS cents, ROUND(i) AS whole

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
-- time int64 | r float64 | cents float64 | whole int64
-- 1 | 2.0 | 2.5 | 7
-- 2 | -2.0 | -2.5 | -7
-- 3 | 0.0 | 0.0 | 0
-- 4 | NULL | NULL | NULL
-- 5 | 1235.0 | 1234.57 | 100
-- 6 | 0.0 | 0.25 | 9

--duckdb q
SELECT time, round_even(f, 0) AS r, round_even(f, 2) AS cents, i AS whole FROM nums
