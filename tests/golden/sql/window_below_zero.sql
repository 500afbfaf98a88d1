-- Windows have the same length below zero: -1 / 10 is window -1, not 0.

--stream s: time int64; ordered by time

--query q
SELECT tb, COUNT(*) AS n, MIN(time) AS first FROM s GROUP BY time/10 AS tb

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- q = q@1

--input s
-- time
-- -21
-- -10
-- -9
-- ~
-- -1
-- 0
-- 9
-- 10

--expect q
-- tb int64 | n int64 | first int64
-- -3 | 1 | -21
-- -1 | 3 | -10
-- 0 | 2 | 0
-- 1 | 1 | 10

--duckdb q
SELECT CAST(floor(time / 10) AS BIGINT) AS tb, count(*) AS n, min(time) AS first FROM s GROUP BY ALL
