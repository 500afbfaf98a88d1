-- CAST between numbers, texts and truth; a float loses its fraction.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, CAST(i AS double) AS d, CAST(f AS int64) AS whole, CAST(i AS varchar) AS t, CAST(i AS boolean) AS b, i::int32 + 1 AS small FROM nums

--plan
-- q = nums select time, CAST(i AS float64) AS d, CAST(f AS int64) AS whole, CAST(i AS string) AS t, CAST(i AS boolean) AS b, CAST(i AS int32) + 1 AS small

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
-- time int64 | d float64 | whole int64 | t string | b boolean | small int64
-- 1 | 7.0 | 2 | 7 | true | 8
-- 2 | -7.0 | -2 | -7 | true | -6
-- 3 | 0.0 | 0 | 0 | false | 1
-- 4 | NULL | NULL | NULL | NULL | NULL
-- 5 | 100.0 | 1234 | 100 | true | 101
-- 6 | 9.0 | 0 | 9 | true | 10

--duckdb q
SELECT time, CAST(i AS double) AS d, CAST(trunc(f) AS int64) AS whole, CAST(i AS varchar) AS t, CAST(i AS boolean) AS b, i::int32 + 1 AS small FROM nums
