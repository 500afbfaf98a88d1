-- Keys of many types: texts, truth values, floats, dates.

--stream s: time int64, t string, b boolean, f float64, d date; ordered by time

--query q
SELECT t, b, f, d, COUNT(*) AS n FROM s GROUP BY TUMBLE(time, 10), t, b, f, d

--plan
-- q@1: aggregate TUMBLE(10) by (t, b, f, d) from s, sub-aggregated, level 1
-- q = q@1 select t, b, f, d, n

--input s
-- time | t | b | f | d
-- 1 | a | true | 1.5 | 2026-01-31
-- 2 | a | true | 1.5 | 2026-01-31
-- 3 | a | false | 1.5 | 2026-01-31
-- ~
-- 4 | b | NULL | 0.0 | 1969-12-31
-- 5 | b | NULL | -0.0 | 1969-12-31
-- 6 | a | true | 1.5 | 2026-01-31

--expect q
-- t string | b boolean | f float64 | d date | n int64
-- a | false | 1.5 | 2026-01-31 | 1
-- a | true | 1.5 | 2026-01-31 | 3
-- b | NULL | 0.0 | 1969-12-31 | 2

--duckdb q
SELECT t, b, f, d, count(*) AS n FROM s GROUP BY ALL
