-- DECIMAL through windows, extremes and quantiles.

--stream days: day date, shop string, sales decimal(10, 2); ordered by day

--query sums
SELECT day, sum(sales) AS s, min(sales) AS l, max_by(shop, sales) AS best FROM days GROUP BY day

--query medians
SELECT window_start, median(sales) AS m, quantile_disc(sales, 0.5) AS d FROM days GROUP BY TUMBLE(day, '14 days')

--query rounded
SELECT day, round(sales * 1.07, 1) AS r, CAST(sales AS INTEGER) AS w FROM days

--plan
-- sums@1: aggregate TUMBLE(1 AS day) by () from days, sub-aggregated, level 1
-- medians@1: aggregate TUMBLE(14) by () from days, sub-aggregated, level 1
-- rounded = days select day, ROUND(sales * 1.07, 1) AS r, CAST(sales AS int32) AS w
-- sums = sums@1
-- medians = medians@1 select window_start, m, d

--input days
-- day | shop | sales
-- 2026-01-30 | a | 10.50
-- 2026-01-31 | b | 20.25
-- ~
-- 2026-02-01 | a | 5.00
-- 2026-02-02 | a | NULL
-- ~
-- 2026-02-09 | b | 7.75

--expect sums
-- day date | s decimal(38, 2) | l decimal(10, 2) | best string
-- 2026-01-30 | 10.50 | 10.50 | a
-- 2026-01-31 | 20.25 | 20.25 | b
-- 2026-02-01 | 5.00 | 5.00 | a
-- 2026-02-02 | NULL | NULL | NULL
-- 2026-02-09 | 7.75 | 7.75 | b

--expect medians
-- window_start date | m float64 | d decimal(10, 2)
-- 2026-01-29 | 9.125 | 7.75

--expect rounded
-- day date | r decimal(13, 1) | w int32
-- 2026-01-30 | 11.2 | 11
-- 2026-01-31 | 21.7 | 20
-- 2026-02-01 | 5.4 | 5
-- 2026-02-02 | NULL | NULL
-- 2026-02-09 | 8.3 | 8
