-- TRY_CAST gives NULL for what is no value of the type.

--stream s: time int64, t string, f float64; ordered by time

--query q
SELECT time, TRY_CAST(t AS BIGINT) AS i, TRY_CAST(t AS DOUBLE) AS d, TRY_CAST(t AS DATE) AS day FROM s

--query sums
SELECT tb, SUM(TRY_CAST(t AS BIGINT)) AS total, COUNT(*) AS n FROM s WHERE f > 0 GROUP BY time // 10 AS tb

--plan
-- sums@1: aggregate TUMBLE(10 AS tb) by () from s where f > 0, sub-aggregated, level 1
-- q = s select time, TRY_CAST(t AS int64) AS i, TRY_CAST(t AS float64) AS d, TRY_CAST(t AS date) AS day
-- sums = sums@1

--input s
-- time | t | f
-- 1 | 12 | 1.0
-- 2 | 'x12' | 1.0
-- 3 | 2026-02-03 | 1.0
-- ~
-- 4 | NULL | 2.0
-- 12 | '1e3' | 1.0
-- 13 | 99999999999999999999 | 1.0
-- 14 | -7 | 1.0

--expect q
-- time int64 | i int64 | d float64 | day date
-- 1 | 12 | 12.0 | NULL
-- 2 | NULL | NULL | NULL
-- 3 | NULL | NULL | 2026-02-03
-- 4 | NULL | NULL | NULL
-- 12 | 1000 | 1000.0 | NULL
-- 13 | NULL | 99999999999999999999.0 | NULL
-- 14 | -7 | -7.0 | NULL

--duckdb q
same

--expect sums
-- tb int64 | total int64 | n int64
-- 0 | 12 | 4
-- 1 | 993 | 3

--duckdb sums
SELECT time // 10 AS tb, SUM(TRY_CAST(t AS BIGINT)) AS total, COUNT(*) AS n FROM s WHERE f > 0 GROUP BY 1
