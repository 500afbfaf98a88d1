-- A union of streams of other types, brought together as the error says; time in 64 bits is still time.

--stream a: time int64, k int64, v float64; ordered by time
--stream b: time int32, k int16; ordered by time

--query q
SELECT tb, k, COUNT(*) AS n, SUM(v) AS total
FROM (SELECT time, k, v FROM a
      UNION ALL
      SELECT CAST(time AS BIGINT) AS time, CAST(k AS BIGINT) AS k, CAST(NULL AS DOUBLE) AS v FROM (SELECT * FROM b)) AS u
GROUP BY time/10 AS tb, k

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by (k) from a and b select CAST(time AS int64) AS time, CAST(k AS int64) AS k, CAST(NULL AS float64) AS v, sub-aggregated, level 1
-- q = q@1

--input a
-- time | k | v
-- 1 | 1 | 0.5
-- 2 | 2 | 1.5
-- ~
-- 12 | 1 | 2.5

--input b
-- time | k
-- 3 | 1
-- 9 | 3
-- ~
-- 15 | 1

--expect q
-- tb int64 | k int64 | n int64 | total float64
-- 0 | 1 | 2 | 0.5
-- 0 | 2 | 1 | 1.5
-- 0 | 3 | 1 | NULL
-- 1 | 1 | 2 | 2.5
