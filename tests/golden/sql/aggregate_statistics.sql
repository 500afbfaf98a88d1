-- Variances of all, covariance, correlation and regression.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query spreads
SELECT date_trunc('day', ts) AS d, var_pop(ms) AS a, stddev_pop(ms) AS b, var_samp(ms) AS c FROM log GROUP BY 1

--query pairs
SELECT date_trunc('month', ts) AS d, covar_pop(ms, n) AS a, covar_samp(ms, n) AS b, corr(ms, n) AS c, regr_count(ms, n) AS e FROM log GROUP BY 1

--query lines
SELECT date_trunc('month', ts) AS d, regr_slope(ms, n) AS a, regr_intercept(ms, n) AS b, regr_r2(ms, n) AS c FROM log GROUP BY 1

--plan
-- lines@1: aggregate TUMBLE(1 AS d) by () from log select ts, ms, n, DATE_TRUNC('month', ts) AS #window select ts, ms, n, #window, sub-aggregated, level 1
-- pairs@1: aggregate TUMBLE(1 AS d) by () from log select ts, ms, n, DATE_TRUNC('month', ts) AS #window select ts, ms, n, #window, sub-aggregated, level 1
-- spreads@1: aggregate TUMBLE(1 AS d) by () from log select ts, ms, DATE_TRUNC('day', ts) AS #window select ts, ms, #window, sub-aggregated, level 1
-- lines = lines@1
-- pairs = pairs@1
-- spreads = spreads@1

--input log
-- ts | host | ms | n
-- 2026-01-31 23:59:58 | a | 1.5 | 1
-- 2026-01-31 23:59:59.500 | b | 2.0 | 2
-- 2026-02-01 00:00:00 | a | NULL | 3
-- 2026-02-01 00:00:07 | b | 4.25 | 4
-- ~
-- 2026-02-01 00:59:59 | a | 8.0 | 5
-- 2026-02-01 01:00:00 | NULL | 0.5 | 6
-- 2026-02-28 12:00:00 | b | 3.0 | 7
-- ~
-- 2026-03-29 00:30:00 | a | 2.5 | 8
-- 2026-03-29 01:30:00 | a | 6.0 | 9
-- 2026-03-29 23:00:00 | b | 7.0 | 10

--expect spreads
-- d timestamp | a float64 | b float64 | c float64
-- 2026-01-31 00:00:00 | 0.0625 | 0.25 | 0.125
-- 2026-02-01 00:00:00 | 9.375 | 3.0618621784789726 | 14.0625
-- 2026-02-28 00:00:00 | 0.0 | 0.0 | NULL
-- 2026-03-29 00:00:00 | 3.722222222222222 | 1.9293061504650375 | 5.583333333333333

--duckdb spreads
same

--expect pairs
-- d timestamp | a float64 | b float64 | c float64 | e int64
-- 2026-01-01 00:00:00 | 0.125 | 0.25 | 1.0 | 2
-- 2026-02-01 00:00:00 | -1.40625 | -1.875 | -0.46475800154489005 | 4
-- 2026-03-01 00:00:00 | 1.5 | 2.25 | 0.9522165814091077 | 3

--duckdb pairs
same

--expect lines
-- d timestamp | a float64 | b float64 | c float64
-- 2026-01-01 00:00:00 | 0.5 | 1.0 | 1.0
-- 2026-02-01 00:00:00 | -1.125 | 10.125 | 0.21600000000000003
-- 2026-03-01 00:00:00 | 2.25 | -15.083333333333332 | 0.9067164179104479

--duckdb lines
same
