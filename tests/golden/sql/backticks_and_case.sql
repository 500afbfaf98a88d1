-- Backticks quote; keywords, functions and aggregates may be in any case.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query quoted
select `time`, Upper(`name`) as `a b` from tcp Where `len` Is Not Null

--query grouped
select tb, Count(*) as c, sUm(`len`) as s from tcp group by `time` / 60 as tb

--plan
-- grouped@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- grouped = grouped@1
-- quoted = tcp where len IS NOT NULL select time, UPPER(name) AS a b

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

--expect quoted
-- time int64 | a b string
-- -7 | A-1
-- 1 | B-22
-- 5 | NULL
-- 59 | C
-- 60 | A-3
-- 75 | ''
-- 121 | X

--duckdb quoted
select "time", upper(name) as "a b" from tcp where len is not null

--expect grouped
-- tb int64 | c int64 | s int64
-- -1 | 1 | 100
-- 0 | 3 | 1750
-- 1 | 3 | 100
-- 2 | 1 | -80

--duckdb grouped
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, count(*) AS c, sum(len) AS s FROM tcp GROUP BY 1
