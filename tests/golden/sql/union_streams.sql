-- Two streams as one: they share a watermark, and groups have rows of both.

--stream a: time int64, k string, v int64; ordered by time
--stream b: at int64, k string, v int64; ordered by at

--query both
SELECT tb, k, SUM(v) AS total
FROM (SELECT time, k, v FROM a UNION ALL SELECT at AS time, k, v * 10 AS v FROM b) AS u
GROUP BY time/10 AS tb, k

--plan
-- both@1: aggregate TUMBLE(10 AS tb) by (k) from a and b select at AS time, k, v * 10 AS v, sub-aggregated, level 1
-- both = both@1

--input a
-- time | k | v
-- 1 | x | 1
-- 5 | y | 2
-- ~
-- 12 | x | 4
-- ~
-- 25 | y | 8

--input b
-- at | k | v
-- 2 | x | 1
-- ~
-- 11 | x | 2
-- 14 | y | 4
-- ~
-- 21 | z | 8

--expect both
-- tb int64 | k string | total int64
-- 0 | x | 11
-- 0 | y | 2
-- 1 | x | 24
-- 1 | y | 40
-- 2 | y | 8
-- 2 | z | 80

--duckdb both
SELECT time // 10 AS tb, k, sum(v) AS total FROM (SELECT time, k, v FROM a UNION ALL SELECT b."at", k, v * 10 FROM b) GROUP BY ALL
