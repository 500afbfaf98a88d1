-- Three queries over one another, each with wider windows than the one below.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS cnt
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP

--query heavy_flows
SELECT tb, srcIP, MAX(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP

--query periods
SELECT period, SUM(max_cnt) AS total, COUNT(*) AS n FROM heavy_flows GROUP BY tb/2 AS period

--plan
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- heavy_flows@1: aggregate TUMBLE(1 AS tb) by (srcIP) from flows@1, sub-aggregated, level 2
-- periods@1: aggregate TUMBLE(2 AS period) by () from heavy_flows@1, sub-aggregated, level 3
-- flows = flows@1
-- heavy_flows = heavy_flows@1
-- periods = periods@1

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

--expect periods
-- period int64 | total int64 | n int64
-- 0 | 5 | 4
-- 1 | 2 | 2

--duckdb periods
SELECT tb // 2 AS period, sum(max_cnt) AS total, count(*) AS n
FROM (SELECT tb, srcIP, max(cnt) AS max_cnt FROM (SELECT time // 60 AS tb, srcIP, destIP, count(*) AS cnt FROM tcp GROUP BY ALL) GROUP BY ALL) GROUP BY ALL
