-- COUNT_WINDOW(2): every two rows of a group; a last single row waits for ever.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT srcIP, window_start, window_end, SUM(len) AS bytes FROM tcp GROUP BY COUNT_WINDOW(2), srcIP

--plan
-- q@1: aggregate ROWS(2, 2) by (srcIP) from tcp, level 1
-- q = q@1 select srcIP, window_start, window_end, bytes

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
-- srcIP int64 | window_start int64 | window_end int64 | bytes int64
-- 10 | 1 | 5 | 300
-- 10 | 59 | 60 | 1540
-- 11 | 30 | 75 | 110

--duckdb q
SELECT srcIP, min(time) AS window_start, max(time) AS window_end, sum(len) AS bytes FROM (
  SELECT *, (row_number() OVER (PARTITION BY srcIP ORDER BY time) - 1) // 2 AS number FROM tcp)
GROUP BY srcIP, number HAVING count(*) = 2
