-- GROUP BY the ordered attribute itself: a window for every moment.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP, COUNT(*) AS n, SUM(len) AS bytes
FROM tcp GROUP BY time AS tb, srcIP

--plan
-- q@1: aggregate TUMBLE(1 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1

--input tcp
-- time | srcIP | destIP | len | flags
-- 1 | 10 | 20 | 100 | 2
-- 1 | 10 | 21 | 50 | 2
-- 1 | 11 | 21 | 7 | 2
-- ~
-- 2 | 10 | 20 | 1 | 2

--expect q
-- tb int64 | srcIP int64 | n int64 | bytes int64
-- 1 | 10 | 2 | 150
-- 1 | 11 | 1 | 7
-- 2 | 10 | 1 | 1

--duckdb q
SELECT time AS tb, srcIP, count(*) AS n, sum(len) AS bytes FROM tcp GROUP BY ALL
