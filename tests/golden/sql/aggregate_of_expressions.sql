-- Aggregates take expressions.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, SUM(len * 8) AS bits, MAX(len % 100) AS rest, COUNT(CASE WHEN flags & 16 = 16 THEN 1 END) AS acks
FROM tcp GROUP BY time/60 AS tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
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
-- tb int64 | bits int64 | rest int64 | acks int64
-- 0 | 14800 | 50 | 2
-- 1 | 6400 | 60 | 2
-- 2 | 640 | 80 | 1

--duckdb q
SELECT time // 60 AS tb, sum(len * 8) AS bits, max(len % 100) AS rest, count(CASE WHEN flags & 16 = 16 THEN 1 END) AS acks
FROM tcp GROUP BY ALL
