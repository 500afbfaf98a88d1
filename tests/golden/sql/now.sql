-- CURRENT_TIMESTAMP is the time at which the epoch began, the same for all rows of it.

--stream s: time int64, v int64; ordered by time
--no oracle: its clock is another one

--query q
SELECT time, CURRENT_TIMESTAMP > TIMESTAMP '2020-01-01' AS later, CURRENT_DATE > DATE '2020-01-01' AS day FROM s

--query same_for_all
SELECT tb, COUNT(*) AS n FROM (SELECT time, NOW() - CURRENT_TIMESTAMP AS d FROM s) x WHERE d = INTERVAL '0 seconds' GROUP BY time // 10 AS tb

--plan
-- same_for_all@1: aggregate TUMBLE(10 AS tb) by () from s the time of the epoch as current_timestamp select time, current_timestamp - current_timestamp AS d where d = INTERVAL '0:00:00', sub-aggregated, level 1
-- q = s the time of the epoch as current_timestamp select time, current_timestamp > TIMESTAMP '2020-01-01 00:00:00' AS later, CAST(current_timestamp AS date) > DATE '2020-01-01' AS day
-- same_for_all = same_for_all@1

--input s
-- time | v
-- 1 | 1
-- ~
-- 2 | 2
-- 11 | 3

--expect q
-- time int64 | later boolean | day boolean
-- 1 | true | true
-- 2 | true | true
-- 11 | true | true

--duckdb q
same

--expect same_for_all
-- tb int64 | n int64
-- 0 | 2
-- 1 | 1

--duckdb same_for_all
SELECT time // 10 AS tb, COUNT(*) AS n FROM s WHERE NOW() = CURRENT_TIMESTAMP GROUP BY 1
