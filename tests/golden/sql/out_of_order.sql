-- Rows out of order within the lateness change nothing.

--stream s: time int64, k string, v int64; ordered by time; lateness 30

--query q
SELECT tb, k, SUM(v) AS total, FIRST(v) AS f FROM s GROUP BY time/10 AS tb, k

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by (k) from s, sub-aggregated, level 1
-- q = q@1

--input s
-- time | k | v
-- 12 | a | 1
-- 3 | a | 2
-- 25 | b | 4
-- ~
-- 9 | a | 8
-- 21 | a | 16
-- ~
-- 1 | b | 32
-- 38 | a | 64
-- 11 | a | 128

--expect q
-- tb int64 | k string | total int64 | f int64
-- 0 | a | 10 | 2
-- 0 | b | 32 | 32
-- 1 | a | 129 | 128
-- 2 | a | 16 | 16
-- 2 | b | 4 | 4
-- 3 | a | 64 | 64

--duckdb q
SELECT time // 10 AS tb, k, sum(v) AS total, first(v ORDER BY time) AS f FROM s GROUP BY ALL
