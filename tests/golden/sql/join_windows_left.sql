-- Results of windows that have none before them, in a left join.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query heavy_flows
SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP

--query flow_pairs
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt AS before
FROM heavy_flows S1 LEFT JOIN heavy_flows S2 ON S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1

--plan
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- heavy_flows@1: aggregate TUMBLE(1 AS tb) by (srcIP) from flows@1, sub-aggregated, level 2
-- flow_pairs@1: LEFT JOIN ON srcIP = srcIP AND tb = tb + 1 AS S2 by (srcIP) = (srcIP) from heavy_flows@1 and heavy_flows@1, level 3
-- flows = flows@1
-- heavy_flows = heavy_flows@1
-- flow_pairs = flow_pairs@1 select tb, srcIP, max_cnt, max_cnt_S2 AS before

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
-- 200 | 10 | 21 | 80 | 17
-- 202 | NULL | 20 | NULL | NULL
-- 250 | NULL | 20 | NULL | NULL

--expect flow_pairs
-- tb int64 | srcIP int64 | max_cnt int64 | before int64
-- 0 | 10 | 2 | NULL
-- 0 | 11 | 1 | NULL
-- 1 | 10 | 1 | 2
-- 1 | 11 | 1 | 1
-- 2 | 10 | 1 | 1
-- 3 | 10 | 1 | 1
-- 3 | NULL | 1 | NULL
-- 4 | NULL | 1 | NULL

--duckdb flow_pairs
WITH heavy_flows AS (SELECT tb, srcIP, max(cnt) AS max_cnt FROM (SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt FROM tcp GROUP BY ALL) GROUP BY ALL)
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt AS before
FROM heavy_flows S1 LEFT JOIN heavy_flows S2 ON S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1
