-- The value beside an extreme, truth of all and of any, any value.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query by
SELECT tb, max_by(srcIP, len) AS a, min_by(srcIP, len) AS b, arg_max(name, time) AS c FROM tcp GROUP BY time/60 AS tb

--query truths
SELECT tb, bool_and(len > 45) AS a, bool_or(len > 45) AS b, every(srcIP > 1) AS c, count_if(len > 45) AS d FROM tcp GROUP BY time/60 AS tb

--query any
SELECT tb, any_value(tb) AS a FROM (SELECT time, time/60 AS tb FROM tcp) GROUP BY time/60 AS tb

--plan
-- by@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- truths@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- any@1: aggregate TUMBLE(60 AS tb) by () from tcp select time, time // 60 AS tb, sub-aggregated, level 1
-- by = by@1
-- truths = truths@1
-- any = any@1

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

--expect by
-- tb int64 | a int64 | b int64 | c string
-- -1 | 10 | 10 | a-1
-- 0 | 10 | 11 | c
-- 1 | 11 | 10 | b-4
-- 2 | 12 | 12 | x

--duckdb by
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, arg_max(srcIP, len) AS a, arg_min(srcIP, len) AS b, arg_max(name, time) AS c FROM tcp GROUP BY 1

--expect truths
-- tb int64 | a boolean | b boolean | c boolean | d int64
-- -1 | true | true | true | 1
-- 0 | true | true | true | 3
-- 1 | false | true | true | 1
-- 2 | false | false | true | 0

--duckdb truths
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, bool_and(len > 45) AS a, bool_or(len > 45) AS b, bool_and(srcIP > 1) AS c, count_if(len > 45) AS d FROM tcp GROUP BY 1

--expect any
-- tb int64 | a int64
-- -1 | -1
-- 0 | 0
-- 1 | 1
-- 2 | 2
