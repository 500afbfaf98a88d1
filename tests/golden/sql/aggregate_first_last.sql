-- FIRST and LAST follow time, not arrival; they take NULL as a value.

--stream s: time int64, v string; ordered by time; lateness 10

--query q
SELECT tb, FIRST(v) AS f, LAST(v) AS l FROM s GROUP BY time/10 AS tb

--plan
-- q@1: aggregate TUMBLE(10 AS tb) by () from s, sub-aggregated, level 1
-- q = q@1

--input s
-- time | v
-- 4 | d
-- 2 | b
-- 9 | NULL
-- ~
-- 1 | a
-- 15 | x
-- 12 | y

--expect q
-- tb int64 | f string | l string
-- 0 | a | NULL
-- 1 | y | x

--duckdb q
SELECT time // 10 AS tb, first(v ORDER BY time) AS f, last(v ORDER BY time) AS l FROM s GROUP BY ALL
