-- Epochs without rows change nothing.

--stream s: time int64, v int64; ordered by time

--query q
SELECT tb, SUM(v) AS total FROM s GROUP BY time/10 AS tb

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- q = q@1

--input s
-- time | v
-- ~
-- 1 | 1
-- ~
-- ~
-- 12 | 2
-- ~

--expect q
-- tb int64 | total int64
-- 0 | 1
-- 1 | 2

--duckdb q
SELECT time // 10 AS tb, sum(v) AS total FROM s GROUP BY ALL
