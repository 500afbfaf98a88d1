-- Statistics of subnets: a mask of an address is a key.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, net, COUNT(*) AS n, SUM(len) AS bytes FROM tcp GROUP BY time/60 AS tb, srcIP & 0xFFFE AS net

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP & 65534) from tcp, sub-aggregated, level 1
-- q = q@1

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

--expect q
-- tb int64 | net int64 | n int64 | bytes int64
-- 0 | 10 | 4 | 1850
-- 1 | 10 | 3 | 800
-- 2 | 10 | 1 | 80
-- 2 | 12 | 1 | NULL

--duckdb q
SELECT time // 60 AS tb, srcIP & 65534 AS net, count(*) AS n, sum(len) AS bytes FROM tcp GROUP BY ALL
