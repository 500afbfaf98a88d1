-- ARRAY_AGG and STRING_AGG follow the time, or what ORDER BY says.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query by_time
SELECT tb, array_agg(len) AS l, string_agg(name, ',') AS s FROM tcp GROUP BY time/60 AS tb

--query ordered
SELECT tb, array_agg(srcIP ORDER BY len DESC) AS l, string_agg(name, '' ORDER BY name) AS s FROM tcp GROUP BY time/60 AS tb

--query within
SELECT tb, listagg(name, '+') WITHIN GROUP (ORDER BY len) AS s, collect_list(len) AS l FROM tcp GROUP BY time/60 AS tb

--query filtered
SELECT tb, array_agg(len) FILTER (WHERE srcIP = 11) AS l FROM tcp GROUP BY time/60 AS tb

--plan
-- by_time@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- filtered@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- ordered@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- within@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- by_time = by_time@1
-- filtered = filtered@1
-- ordered = ordered@1
-- within = within@1

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

--expect by_time
-- tb int64 | l list(int64) | s string
-- -1 | [100] | a-1
-- 0 | [200, 50, 1500] | b-22,c
-- 1 | [40, 60, null] | a-3,,b-4
-- 2 | [-80] | x

--duckdb by_time
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, list(len ORDER BY time) AS l, string_agg(name, ',' ORDER BY time) AS s FROM tcp GROUP BY 1

--expect ordered
-- tb int64 | l list(int64) | s string
-- -1 | [10] | a-1
-- 0 | [10, 10, 11] | b-22c
-- 1 | [11, 10, 11] | a-3b-4
-- 2 | [12] | x

--duckdb ordered
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, list(srcIP ORDER BY len DESC NULLS LAST, time) AS l, string_agg(name, '' ORDER BY name) AS s FROM tcp GROUP BY 1

--expect within
-- tb int64 | s string | l list(int64)
-- -1 | a-1 | [100]
-- 0 | b-22+c | [200, 50, 1500]
-- 1 | a-3++b-4 | [40, 60]
-- 2 | x | [-80]

--duckdb within
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, string_agg(name, '+' ORDER BY len NULLS LAST, time) AS s, list(len ORDER BY time) FILTER (len IS NOT NULL) AS l FROM tcp GROUP BY 1

--expect filtered
-- tb int64 | l list(int64)
-- -1 | NULL
-- 0 | [50]
-- 1 | [60, null]
-- 2 | NULL

--duckdb filtered
SELECT CAST(floor(time / 60) AS BIGINT) AS tb, list(len ORDER BY time) FILTER (srcIP = 11) AS l FROM tcp GROUP BY 1
