-- Expressions over aggregates; an aggregate that occurs twice is computed once.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, SUM(len) / COUNT(*) AS mean, MAX(len) - MIN(len) AS spread,
       CASE WHEN COUNT(*) > 3 THEN 'busy' ELSE 'calm' END AS state, tb * 60 AS since
FROM tcp GROUP BY time/60 AS tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- q = q@1 select tb, "SUM(len)" // "COUNT(*)" AS mean, "MAX(len)" - "MIN(len)" AS spread, CASE WHEN "COUNT(*)" > 3 THEN 'busy' ELSE 'calm' END AS state, tb * 60 AS since

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
-- tb int64 | mean int64 | spread int64 | state string | since int64
-- 0 | 462 | 1450 | busy | 0
-- 1 | 266 | 660 | calm | 60
-- 2 | 40 | 0 | calm | 120

--duckdb q
SELECT time // 60 AS tb, sum(len) // count(*) AS mean, max(len) - min(len) AS spread,
  CASE WHEN count(*) > 3 THEN 'busy' ELSE 'calm' END AS state, time // 60 * 60 AS since FROM tcp GROUP BY ALL
