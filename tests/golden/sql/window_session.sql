-- SESSION: a window ends when its group has been silent for 30.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT srcIP, window_start, window_end, COUNT(*) AS n FROM tcp GROUP BY SESSION(time, 30), srcIP

--plan
-- q@1: aggregate SESSION(30) by (srcIP) from tcp, sub-aggregated, level 1
-- q = q@1 select srcIP, window_start, window_end, n

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
-- srcIP int64 | window_start int64 | window_end int64 | n int64
-- 10 | 1 | 35 | 2
-- 10 | 59 | 90 | 2
-- 10 | 121 | 151 | 1
-- 11 | 30 | 60 | 1
-- 11 | 75 | 105 | 1
-- 11 | 118 | 148 | 1
-- 12 | 130 | 160 | 1

--duckdb q
SELECT srcIP, min(time) AS window_start, max(time) + 30 AS window_end, count(*) AS n FROM (
  SELECT *, sum(fresh) OVER (PARTITION BY srcIP ORDER BY time) AS number FROM (
    SELECT *, CASE WHEN time - lag(time) OVER (PARTITION BY srcIP ORDER BY time) < 30 THEN 0 ELSE 1 END AS fresh
    FROM tcp)) GROUP BY srcIP, number
