-- A group whose values are all NULL: counts are 0, all else is NULL.

--stream s: time int64, k string, v int64; ordered by time

--query q
SELECT k, COUNT(v) AS n, SUM(v) AS s, AVG(v) AS a, MIN(v) AS m, BIT_OR(v) AS b FROM s GROUP BY TUMBLE(time, 10), k

--plan
-- q@1: aggregate TUMBLE(10) by (k) from s, sub-aggregated, level 1
-- q = q@1 select k, n, s, a, m, b

--input s
-- time | k | v
-- 1 | a | NULL
-- 2 | a | NULL
-- ~
-- 3 | b | 5
-- 4 | b | NULL

--expect q
-- k string | n int64 | s int64 | a float64 | m int64 | b int64
-- a | 0 | NULL | NULL | NULL | NULL
-- b | 1 | 5 | 5.0 | 5 | 5

--duckdb q
SELECT k, count(v) AS n, sum(v) AS s, avg(v) AS a, min(v) AS m, bit_or(v) AS b FROM s GROUP BY k
