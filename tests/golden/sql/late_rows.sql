-- A row older than the watermark at the start of its epoch is late and counts nowhere.
-- The watermark is the newest time less the lateness of 10: after the first epoch 15, after the second 30.

--stream s: time int64, v int64; ordered by time; lateness 10
--epochs matter

--query q
SELECT tb, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY time/10 AS tb

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- q = q@1

--input s
-- time | v
-- 5 | 1
-- 25 | 2
-- ~
-- 14 | 4
-- 15 | 8
-- 40 | 16
-- ~
-- 29 | 32
-- 30 | 64
-- 3 | 128

--expect q
-- tb int64 | n int64 | total int64
-- 0 | 1 | 1
-- 1 | 1 | 8
-- 2 | 1 | 2
-- 3 | 1 | 64
-- 4 | 1 | 16
