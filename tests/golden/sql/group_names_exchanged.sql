-- GROUP BY srcIP AS destIP, destIP AS srcIP: above it, the names it gives hide the columns.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query q
SELECT tb, srcIP, destIP, srcIP + 1 AS next, COUNT(*) AS n FROM tcp
GROUP BY time/60 AS tb, srcIP AS destIP, destIP AS srcIP

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- q = q@1 select tb, srcIP, destIP, srcIP + 1 AS next, n

--input tcp
-- time | srcIP | destIP | len
-- 1 | 10 | 20 | 100
-- 5 | 10 | 20 | 200
-- ~
-- 59 | 10 | 21 | 1500
-- 60 | 11 | 20 | 40

--expect q
-- tb int64 | srcIP int64 | destIP int64 | next int64 | n int64
-- 0 | 20 | 10 | 21 | 2
-- 0 | 21 | 10 | 22 | 1
-- 1 | 20 | 11 | 21 | 1

--duckdb q
SELECT time // 60 AS tb, destIP AS srcIP, srcIP AS destIP, tcp.destIP + 1 AS next, count(*) AS n
FROM tcp GROUP BY ALL
