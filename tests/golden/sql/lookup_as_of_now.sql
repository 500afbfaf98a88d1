-- FOR SYSTEM_TIME AS OF PROCTIME() of a table: the version there is when the row is worked on, as in every join with it.

--stream sales: time int64, cur string, amount int64; ordered by time
--table rates: cur string, rate int64
-- cur | rate
-- EUR | 2
-- USD | 3

--query flink dialect=flink
SELECT s.time, s.amount * r.rate AS worth FROM sales AS s JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON s.cur = r.cur

--query now
SELECT s.time, r.rate FROM sales s LEFT JOIN rates FOR SYSTEM_TIME AS OF NOW() AS r ON s.cur = r.cur

--plan
-- flink = sales inner look-up in rates by cur = cur select time, amount * rate AS worth
-- now = sales left look-up in rates by cur = cur select time, rate

--input sales
-- time | cur | amount
-- 1 | EUR | 10
-- 2 | GBP | 20
-- ~
-- 3 | USD | 30
-- 4 | NULL | 5

--expect flink
-- time int64 | worth int64
-- 1 | 20
-- 3 | 90

--duckdb flink
SELECT s.time, s.amount * r.rate AS worth FROM sales s JOIN rates r ON s.cur = r.cur

--expect now
-- time int64 | rate int64
-- 1 | 2
-- 2 | NULL
-- 3 | 3
-- 4 | NULL

--duckdb now
SELECT s.time, r.rate FROM sales s LEFT JOIN rates r ON s.cur = r.cur
