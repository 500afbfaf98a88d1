-- A name of WITH may read those before it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
WITH minutes AS (SELECT tb, srcIP, SUM(len) AS bytes FROM tcp GROUP BY time/60 AS tb, srcIP),
     busy AS (SELECT tb, bytes FROM minutes WHERE bytes > 90)
SELECT tb, COUNT(*) AS n, MAX(bytes) AS top FROM busy GROUP BY tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- q@2: aggregate TUMBLE(1 AS tb) by () from q@1 where bytes > 90 select tb, bytes, sub-aggregated, level 2
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
-- tb int64 | n int64 | top int64
-- 0 | 1 | 1800
-- 1 | 1 | 760

--duckdb q
SELECT tb, count(*) AS n, max(bytes) AS top FROM (SELECT time // 60 AS tb, srcIP, sum(len) AS bytes FROM tcp GROUP BY ALL)
WHERE bytes > 90 GROUP BY tb
