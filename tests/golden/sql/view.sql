-- Flows and the heaviest flow of each source: a query reads another by its name.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS cnt
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP

--query heavy_flows
SELECT tb, srcIP, MAX(cnt) AS max_cnt
FROM flows
GROUP BY tb, srcIP

--plan
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- heavy_flows@1: aggregate TUMBLE(1 AS tb) by (srcIP) from flows@1, sub-aggregated, level 2
-- flows = flows@1
-- heavy_flows = heavy_flows@1

--input tcp
-- time | srcIP | destIP | len | flags
-- 1 | 10 | 20 | 100 | 2
-- 5 | 10 | 20 | 200 | 16
-- 30 | 11 | 20 | 50 | 1
-- ~
-- 59 | 10 | 21 | 1500 | 24
-- 60 | 10 | 20 | 40 | 2
-- 75 | 11 | 20 | 60 | 18
-- ~
-- 118 | 11 | 22 | 700 | 16
-- 121 | 10 | 20 | 80 | 17
-- 130 | 12 | 20 | NULL | NULL

--expect flows
-- tb int64 | srcIP int64 | destIP int64 | cnt int64
-- 0 | 10 | 20 | 2
-- 0 | 10 | 21 | 1
-- 0 | 11 | 20 | 1
-- 1 | 10 | 20 | 1
-- 1 | 11 | 20 | 1
-- 1 | 11 | 22 | 1
-- 2 | 10 | 20 | 1
-- 2 | 12 | 20 | 1

--expect heavy_flows
-- tb int64 | srcIP int64 | max_cnt int64
-- 0 | 10 | 2
-- 0 | 11 | 1
-- 1 | 10 | 1
-- 1 | 11 | 1
-- 2 | 10 | 1
-- 2 | 12 | 1

--duckdb flows
SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt FROM tcp GROUP BY ALL

--duckdb heavy_flows
SELECT tb, srcIP, max(cnt) AS max_cnt FROM (SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt FROM tcp GROUP BY ALL) GROUP BY ALL
