-- COUNT_WINDOW(3, 1): the last three rows, at every row from the third on.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT srcIP, window_end, SUM(len) AS bytes, MIN(len) AS least FROM tcp GROUP BY COUNT_WINDOW(3, 1), srcIP

--plan
-- q@1: aggregate ROWS(3, 1) by (srcIP) from tcp, level 1
-- q = q@1 select srcIP, window_end, bytes, least

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
-- srcIP int64 | window_end int64 | bytes int64 | least int64
-- 10 | 59 | 1800 | 100
-- 10 | 60 | 1740 | 40
-- 10 | 121 | 1620 | 40
-- 11 | 118 | 810 | 50

--duckdb q
SELECT srcIP, time AS window_end, bytes, least FROM (
  SELECT *, sum(len) OVER last AS bytes, min(len) OVER last AS least, count(*) OVER last AS n FROM tcp
  WINDOW last AS (PARTITION BY srcIP ORDER BY time ROWS 2 PRECEDING)) WHERE n = 3
