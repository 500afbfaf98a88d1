-- FOR SYSTEM_TIME AS OF with whole numbers of other widths: times and keys meet in the wider type.

--stream sales: time int32, cur int16, amount int64; ordered by time; lateness 5
--stream rates: since int64, cur int64, rate int64; ordered by since

--query q
SELECT s.time, s.cur, r.rate, r.since FROM sales s LEFT JOIN rates FOR SYSTEM_TIME AS OF s.time AS r ON s.cur = r.cur

--query counted
SELECT s.time // 20 AS m, COUNT(r.rate) AS n FROM sales s JOIN rates FOR SYSTEM_TIME AS OF s.time AS r ON s.cur = r.cur GROUP BY s.time // 20

--plan
-- counted@1: TIMELINE BY "key 0 of the join" AS key 0 of the join FIRST "side of the join" AGG LATEST(since, "side of the join" = 0) AS since as of, LATEST(cur_r, "side of the join" = 0) AS cur_r as of, LATEST(rate, "side of the join" = 0) AS rate as of, LATEST("side of the join" = 0, "side of the join" = 0) AS version found by ("key 0 of the join") from sales select CAST(time AS int64) AS time, cur, amount select time, cur, amount, CAST(NULL AS int64) AS since, CAST(NULL AS int64) AS cur_r, CAST(NULL AS int64) AS rate, CAST(cur AS int64) AS key 0 of the join, 1 AS side of the join and rates select CAST(since AS int64) AS since, cur, rate where CAST(cur AS int64) IS NOT NULL select since AS time, CAST(NULL AS int16) AS cur, CAST(NULL AS int64) AS amount, since, cur AS cur_r, rate, CAST(cur AS int64) AS key 0 of the join, 0 AS side of the join, level 1
-- counted@2: aggregate TUMBLE(20 AS m) by () from counted@1 where ("side of the join" = 1) & "version found" IS NOT NULL select time, cur, amount, "since as of" AS since, "cur_r as of" AS cur_r, "rate as of" AS rate, sub-aggregated, level 2
-- counted = counted@2
-- q = counted@1 where "side of the join" = 1 select time, cur, amount, "since as of" AS since, "cur_r as of" AS cur_r, "rate as of" AS rate select time, cur, rate, since

--input sales
-- time | cur | amount
-- 1 | 1 | 10
-- 9 | 2 | 20
-- ~
-- 12 | NULL | 5
-- 30 | 1 | 40

--input rates
-- since | cur | rate
-- 0 | 1 | 100
-- 9 | 2 | 101
-- ~
-- 29 | 1 | 103
-- 40 | 4294967298 | 7

--expect q
-- time int64 | cur int16 | rate int64 | since int64
-- 1 | 1 | 100 | 0
-- 9 | 2 | 101 | 9
-- 12 | NULL | NULL | NULL
-- 30 | 1 | 103 | 29

--expect counted
-- m int64 | n int64
-- 0 | 2
-- 1 | 1

--duckdb q
SELECT s.time, s.cur, r.rate, r.since FROM sales s ASOF LEFT JOIN rates r ON s.cur = r.cur AND s.time >= r.since

--duckdb counted
SELECT s.time // 20 AS m, COUNT(r.rate) AS n FROM sales s ASOF JOIN rates r ON s.cur = r.cur AND s.time >= r.since GROUP BY s.time // 20
