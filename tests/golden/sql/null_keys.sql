-- NULL is a key like any other: its rows are one group.

--stream s: time int64, k string, n int64, v int64; ordered by time

--query q
SELECT k, n, COUNT(*) AS rows, SUM(v) AS total FROM s GROUP BY TUMBLE(time, 10), k, n

--plan
-- q@1: aggregate TUMBLE(10) by (k, n) from s, sub-aggregated, level 1
-- q = q@1 select k, n, rows, total

--input s
-- time | k | n | v
-- 1 | NULL | 1 | 1
-- 2 | '' | 1 | 2
-- 3 | NULL | NULL | 4
-- ~
-- 4 | NULL | 1 | 8
-- 5 | '' | NULL | 16
-- 6 | NULL | NULL | NULL

--expect q
-- k string | n int64 | rows int64 | total int64
-- '' | 1 | 1 | 2
-- '' | NULL | 1 | 16
-- NULL | 1 | 2 | 9
-- NULL | NULL | 2 | 4

--duckdb q
SELECT k, n, count(*) AS rows, sum(v) AS total FROM s GROUP BY k, n
