-- A stream without rows gives no rows, and the run ends.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1

--input tcp
-- time | srcIP | destIP | len | flags

--expect q
-- tb int64 | srcIP int64 | n int64

--duckdb q
SELECT time // 60 AS tb, srcIP, count(*) AS n FROM tcp GROUP BY ALL
