-- EMIT CHANGES at the end of a query is emit=update: the groups that an epoch has changed.

--stream s: time int64, k string, v int64; ordered by time
--set allow_unbounded_state=true
--epochs matter

--query running
SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k EMIT CHANGES

--query windows
SELECT tb, COUNT(*) AS n FROM s GROUP BY time // 10 AS tb EMIT CHANGES

--plan
-- running@1: aggregate UNBOUNDED on update by (k) from s, sub-aggregated, level 1
-- windows@1: aggregate TUMBLE(10 AS tb) on update by () from s, sub-aggregated, level 1
-- running = running@1
-- windows = windows@1

--input s
-- time | k | v
-- 1 | a | 1
-- 2 | b | 2
-- ~
-- 8 | a | 4
-- 11 | a | 8
-- ~
-- 25 | b | 16

--expect running
-- k string | n int64 | total int64
-- a | 1 | 1
-- b | 1 | 2
-- a | 3 | 13
-- b | 2 | 18

--duckdb running
SELECT k, n, total FROM (SELECT time, k, COUNT(*) OVER o AS n, SUM(v) OVER o AS total FROM s WINDOW o AS (PARTITION BY k ORDER BY time)) WHERE time <> 8

--expect windows
-- tb int64 | n int64
-- 0 | 2
-- 0 | 3
-- 1 | 1
-- 2 | 1

--duckdb windows
SELECT tb, n FROM (SELECT time, time // 10 AS tb, COUNT(*) OVER (PARTITION BY time // 10 ORDER BY time) AS n FROM s) WHERE time > 1
