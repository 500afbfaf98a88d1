-- / of integers and // round down, % follows; / with a float is exact.

--stream nums: time int64, i int64, f float64; ordered by time

--query q
SELECT time, i / 2 AS half, i // 2 AS floored, i % 4 AS rest, i / 2.0 AS exact, MOD(i, 4) AS same FROM nums

--plan
-- q = nums select time, i // 2 AS half, i // 2 AS floored, i % 4 AS rest, i / 2.0 AS exact, i % 4 AS same

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
-- time int64 | half int64 | floored int64 | rest int64 | exact float64 | same int64
-- 1 | 3 | 3 | 3 | 3.5 | 3
-- 2 | -4 | -4 | 1 | -3.5 | 1
-- 3 | 0 | 0 | 0 | 0.0 | 0
-- 4 | NULL | NULL | NULL | NULL | NULL
-- 5 | 50 | 50 | 0 | 50.0 | 0
-- 6 | 4 | 4 | 1 | 4.5 | 1

--duckdb q
SELECT time, CAST(floor(i / 2) AS BIGINT) AS half, CAST(floor(i / 2) AS BIGINT) AS floored, ((i % 4) + 4) % 4 AS rest,
  i / 2.0 AS exact, ((i % 4) + 4) % 4 AS same FROM nums
