-- SUM, AVG and ARRAY_AGG of different values, COLLECT_SET.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query sums
SELECT tb, SUM(DISTINCT srcIP) AS s, AVG(DISTINCT srcIP) AS a FROM tcp GROUP BY time/60 AS tb

--query sets
SELECT tb, collect_set(srcIP) AS s, ARRAY_AGG(DISTINCT name) AS n FROM tcp GROUP BY time/60 AS tb

--plan
-- sets@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- sums@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- sets = sets@1
-- sums = sums@1

--input tcp
-- time | srcIP | len | name
-- -7 | 10 | 100 | 'a-1'
-- 1 | 10 | 200 | 'b-22'
-- 5 | 11 | 50 | NULL
-- ~
-- 59 | 10 | 1500 | 'c'
-- 60 | 10 | 40 | 'a-3'
-- 75 | 11 | 60 | ''
-- ~
-- 118 | 11 | NULL | 'b-4'
-- 121 | 12 | -80 | 'x'

--expect sums
-- tb int64 | s int64 | a float64
-- -1 | 10 | 10.0
-- 0 | 21 | 10.5
-- 1 | 21 | 10.5
-- 2 | 12 | 12.0

--duckdb sums
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, sum(DISTINCT srcIP) AS s, avg(DISTINCT srcIP) AS a FROM tcp GROUP BY 1

--expect sets
-- tb int64 | s list(int64) | n list(string)
-- -1 | [10] | ["a-1"]
-- 0 | [10, 11] | ["b-22", "c"]
-- 1 | [10, 11] | ["", "a-3", "b-4"]
-- 2 | [12] | ["x"]

--duckdb sets
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, list_sort(list(DISTINCT srcIP)) AS s, list_sort(list(DISTINCT name) FILTER (name IS NOT NULL)) AS n FROM tcp GROUP BY 1
