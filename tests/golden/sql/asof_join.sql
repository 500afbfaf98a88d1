-- ASOF JOIN: the newest row by key whose time is not after that of the row, as DuckDB writes it.

--stream sales: time int64, cur string, amount int64; ordered by time; lateness 5
--stream rates: since int64, cur string, rate int64; ordered by since

--query inner_join dialect=duckdb
SELECT s.time, s.cur, s.amount * r.rate AS value, r.since FROM sales s ASOF JOIN rates r ON s.cur = r.cur AND s.time >= r.since

--query left_join dialect=duckdb
SELECT s.time, s.cur, r.rate FROM sales s ASOF LEFT JOIN rates r ON r.since <= s.time AND s.cur = r.cur

--plan
-- inner_join@1: TIMELINE BY "key 0 of the join" AS key 0 of the join FIRST "side of the join" AGG LATEST(since, "side of the join" = 0) AS since as of, LATEST(cur_r, "side of the join" = 0) AS cur_r as of, LATEST(rate, "side of the join" = 0) AS rate as of, LATEST("side of the join" = 0, "side of the join" = 0) AS version found by ("key 0 of the join") from sales select time, cur, amount, CAST(NULL AS int64) AS since, CAST(NULL AS string) AS cur_r, CAST(NULL AS int64) AS rate, cur AS key 0 of the join, 1 AS side of the join and rates where cur IS NOT NULL select since AS time, CAST(NULL AS string) AS cur, CAST(NULL AS int64) AS amount, since, cur AS cur_r, rate, cur AS key 0 of the join, 0 AS side of the join, level 1
-- inner_join = inner_join@1 where ("side of the join" = 1) & "version found" IS NOT NULL select time, cur, amount, "since as of" AS since, "cur_r as of" AS cur_r, "rate as of" AS rate select time, cur, amount * rate AS value, since
-- left_join = inner_join@1 where "side of the join" = 1 select time, cur, amount, "since as of" AS since, "cur_r as of" AS cur_r, "rate as of" AS rate select time, cur, rate

--input sales
-- time | cur | amount
-- 1 | eur | 10
-- 5 | usd | 20
-- 9 | eur | 30
-- ~
-- 12 | NULL | 5
-- 15 | gbp | 7
-- 14 | usd | 8
-- ~
-- 30 | eur | 40
-- 33 | gbp | 9
-- ~
-- 50 | eur | 50

--input rates
-- since | cur | rate
-- 0 | eur | 100
-- 4 | usd | 90
-- 9 | eur | 101
-- ~
-- 10 | NULL | 1
-- 16 | gbp | 120
-- 20 | usd | NULL
-- ~
-- 29 | eur | 103
-- 34 | gbp | 121
-- ~
-- 49 | eur | 104
-- 60 | usd | 88

--expect inner_join
-- time int64 | cur string | value int64 | since int64
-- 1 | eur | 1000 | 0
-- 5 | usd | 1800 | 4
-- 9 | eur | 3030 | 9
-- 14 | usd | 720 | 4
-- 30 | eur | 4120 | 29
-- 33 | gbp | 1080 | 16
-- 50 | eur | 5200 | 49

--duckdb inner_join
same

--expect left_join
-- time int64 | cur string | rate int64
-- 1 | eur | 100
-- 5 | usd | 90
-- 9 | eur | 101
-- 12 | NULL | NULL
-- 14 | usd | 90
-- 15 | gbp | NULL
-- 30 | eur | 103
-- 33 | gbp | 120
-- 50 | eur | 104

--duckdb left_join
same
