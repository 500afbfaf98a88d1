-- Functions of users over Arrow columns, in SELECT, WHERE and aggregates.

--stream s: time int64, k string, v int64; ordered by time
--function hundredfold
--function both
--no oracle: it has no functions of users

--query q
SELECT time, HUNDREDFOLD(v) AS cents, both(k, upper(k)) AS b FROM s WHERE hundredfold(v) < 1000 OR v IS NULL

--query sums
SELECT tb, SUM(hundredfold(v)) AS total FROM s GROUP BY time // 10 AS tb

--plan
-- sums@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- sums = sums@1
-- q = s where (HUNDREDFOLD(v) < 1000) | v IS NULL select time, HUNDREDFOLD(v) AS cents, BOTH(k, UPPER(k)) AS b

--input s
-- time | k | v
-- 1 | a | 1
-- 2 | b | NULL
-- ~
-- 3 | NULL | 3
-- 14 | c | 50

--expect q
-- time int64 | cents int64 | b string
-- 1 | 100 | a-A
-- 2 | NULL | b-B
-- 3 | 300 | NULL

--duckdb q
SELECT time, v * 100 AS cents, k || '-' || upper(k) AS b FROM s WHERE v * 100 < 1000 OR v IS NULL

--expect sums
-- tb int64 | total int64
-- 0 | 400
-- 1 | 5000

--duckdb sums
SELECT time // 10 AS tb, SUM(v * 100) AS total FROM s GROUP BY 1
