-- A row that comes out of order joins two sessions into one.

--stream s: time int64, k string, v int64; ordered by time; lateness 20

--query q
SELECT k, window_start, window_end, SUM(v) AS total FROM s GROUP BY SESSION(time, 10), k

--plan
-- q@1: aggregate SESSION(10) by (k) from s, sub-aggregated, level 1
-- q = q@1 select k, window_start, window_end, total

--input s
-- time | k | v
-- 0 | a | 1
-- 15 | a | 2
-- 0 | b | 4
-- ~
-- 8 | a | 8
-- 30 | b | 16

--expect q
-- k string | window_start int64 | window_end int64 | total int64
-- a | 0 | 25 | 11
-- b | 0 | 10 | 4
-- b | 30 | 40 | 16

--duckdb q
SELECT k, min(time) AS window_start, max(time) + 10 AS window_end, sum(v) AS total
FROM s GROUP BY k, CASE WHEN k = 'b' THEN time END
