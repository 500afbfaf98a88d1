-- A sub-query in FROM; its time is that of the windows below.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT hour, MAX(cnt) AS most
FROM (SELECT tb, srcIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP) AS minutes
GROUP BY tb/2 AS hour

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q@2: aggregate TUMBLE(2 AS hour) by () from q@1, sub-aggregated, level 2
-- q = q@2

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
-- hour int64 | most int64
-- 0 | 3
-- 1 | 1

--duckdb q
SELECT tb // 2 AS hour, max(cnt) AS most FROM (SELECT time // 60 AS tb, srcIP, count(*) AS cnt FROM tcp GROUP BY ALL) GROUP BY ALL
