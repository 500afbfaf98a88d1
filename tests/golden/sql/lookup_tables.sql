-- Tables beside streams: inner, left, semi and anti joins, before windows and behind them.

--stream s: time int64, cur string, amount int64; ordered by time
--table rates: cur string, rate int64
-- cur | rate
-- EUR | 2
-- USD | 3
-- USD | 4
-- NULL | 5

--query worth
SELECT s.time, s.cur, s.amount * r.rate AS worth FROM s JOIN rates r ON s.cur = r.cur

--query all_rows
SELECT s.time, r.rate FROM s LEFT JOIN rates r ON s.cur = r.cur AND r.rate > 2

--query known
SELECT time FROM s SEMI JOIN rates r ON s.cur = r.cur

--query unknown
SELECT time FROM s ANTI JOIN rates r ON s.cur = r.cur

--query grouped
SELECT time // 10 AS w, r.rate, COUNT(*) AS n FROM s LEFT JOIN rates r ON s.cur = r.cur GROUP BY time // 10, r.rate

--plan
-- grouped@1: aggregate TUMBLE(10 AS w) by (rate) from s left look-up in rates by cur = cur, sub-aggregated, level 1
-- all_rows = s left look-up in rates by cur = cur select time, rate
-- grouped = grouped@1
-- known = s semi look-up in rates by cur = cur select time
-- unknown = s anti look-up in rates by cur = cur select time
-- worth = s inner look-up in rates by cur = cur select time, cur, amount * rate AS worth

--input s
-- time | cur | amount
-- 1 | EUR | 10
-- 2 | USD | 20
-- ~
-- 7 | NULL | 30
-- 8 | GBP | 40
-- 12 | EUR | 50

--expect worth
-- time int64 | cur string | worth int64
-- 1 | EUR | 20
-- 2 | USD | 60
-- 2 | USD | 80
-- 12 | EUR | 100

--duckdb worth
same

--expect all_rows
-- time int64 | rate int64
-- 1 | NULL
-- 2 | 3
-- 2 | 4
-- 7 | NULL
-- 8 | NULL
-- 12 | NULL

--duckdb all_rows
same

--expect known
-- time int64
-- 1
-- 2
-- 12

--duckdb known
same

--expect unknown
-- time int64
-- 7
-- 8

--duckdb unknown
same

--expect grouped
-- w int64 | rate int64 | n int64
-- 0 | 2 | 1
-- 0 | 3 | 1
-- 0 | 4 | 1
-- 0 | NULL | 2
-- 1 | 2 | 1

--duckdb grouped
same
