-- With late='closed-windows' a late row counts where its window is still open.
-- After the first epoch the watermark is 15, after the second 30: windows of ten up to it have closed.

--stream s: time int64, v int64; ordered by time; lateness 10; late closed-windows
--epochs matter

--query windows
SELECT tb, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY time // 10 AS tb

--query hops
SELECT window_end AS e, SUM(v) AS total FROM s GROUP BY HOP(time, 20, 10)

--plan
-- windows@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- hops@1: aggregate HOP(20, 10) by () from s, sub-aggregated, level 1
-- windows = windows@1
-- hops = hops@1 select window_end AS e, total

--input s
-- time | v
-- 5 | 1
-- 25 | 2
-- ~
-- 9 | 4
-- 14 | 8
-- 40 | 16
-- ~
-- 29 | 32
-- 30 | 64
-- 3 | 128

--expect windows
-- tb int64 | n int64 | total int64
-- 0 | 1 | 1
-- 1 | 1 | 8
-- 2 | 1 | 2
-- 3 | 1 | 64
-- 4 | 1 | 16

--duckdb windows
SELECT time // 10 AS tb, COUNT(*) AS n, SUM(v) AS total FROM s WHERE time NOT IN (9, 29, 3) GROUP BY 1

--expect hops
-- e int64 | total int64
-- 10 | 1
-- 20 | 13
-- 30 | 10
-- 40 | 98
-- 50 | 80
-- 60 | 16

--duckdb hops
SELECT e, SUM(v) AS total FROM (SELECT time, v, unnest([time // 10 * 10 + 10, time // 10 * 10 + 20]) AS e FROM s) WHERE NOT (time = 9 AND e = 10) AND NOT (time = 29 AND e = 30) AND time <> 3 GROUP BY 1
