-- A stream whose ordered attribute is a date.

--stream days: day date, shop string, sales decimal(10, 2); ordered by day

--query daily
SELECT day, sum(sales) AS s, count(*) AS c FROM days GROUP BY day

--query weekly
SELECT window_start, window_end, count(*) AS c FROM days GROUP BY TUMBLE(day, '7 days')

--query rows
SELECT day, shop, window_start FROM TUMBLE(days, day, INTERVAL '2' DAY)

--query joined
SELECT a.day, a.shop, b.sales FROM days a JOIN days b ON a.day = b.day AND a.shop = b.shop

--plan
-- daily@1: aggregate TUMBLE(1 AS day) by () from days, sub-aggregated, level 1
-- weekly@1: aggregate TUMBLE(7) by () from days, sub-aggregated, level 1
-- joined@1: INNER JOIN ON day = day AND shop = shop AS b by (shop) = (shop) from days and days, level 1
-- daily = daily@1
-- weekly = weekly@1
-- joined = joined@1 select day, shop, sales_b AS sales
-- rows = days windows TUMBLE(2) of day select day, shop, window_start

--input days
-- day | shop | sales
-- 2026-01-30 | a | 10.50
-- 2026-01-31 | b | 20.25
-- ~
-- 2026-02-01 | a | 5.00
-- 2026-02-02 | a | NULL
-- ~
-- 2026-02-09 | b | 7.75

--expect daily
-- day date | s decimal(38, 2) | c int64
-- 2026-01-30 | 10.50 | 1
-- 2026-01-31 | 20.25 | 1
-- 2026-02-01 | 5.00 | 1
-- 2026-02-02 | NULL | 1
-- 2026-02-09 | 7.75 | 1

--duckdb daily
same

--expect weekly
-- window_start date | window_end date | c int64
-- 2026-01-29 | 2026-02-05 | 4
-- 2026-02-05 | 2026-02-12 | 1

--expect rows
-- day date | shop string | window_start date
-- 2026-01-30 | a | 2026-01-29
-- 2026-01-31 | b | 2026-01-31
-- 2026-02-01 | a | 2026-01-31
-- 2026-02-02 | a | 2026-02-02
-- 2026-02-09 | b | 2026-02-08

--expect joined
-- day date | shop string | sales decimal(10, 2)
-- 2026-01-30 | a | 10.50
-- 2026-01-31 | b | 20.25
-- 2026-02-01 | a | 5.00
-- 2026-02-02 | a | NULL
-- 2026-02-09 | b | 7.75

--duckdb joined
same
