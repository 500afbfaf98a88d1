-- Windows in FROM over an ordered attribute that is a number, also below zero.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query tumble
SELECT window_start, window_end, count(*) AS n FROM TUMBLE(tcp, time, 60) GROUP BY window_start, window_end

--query hop
SELECT window_start, sum(len) AS s FROM HOP(tcp, time, 30, 60) GROUP BY window_start

--query bucket
SELECT time // 60 * 60 AS minute, count(*) AS n FROM tcp GROUP BY time // 60 * 60

--query time_bucket
SELECT time_bucket(50, time) AS b, count(*) AS n FROM tcp GROUP BY 1

--plan
-- tumble@1: aggregate TUMBLE(60) by () from tcp, sub-aggregated, level 1
-- hop@1: aggregate HOP(60, 30) by () from tcp, sub-aggregated, level 1
-- bucket@1: aggregate TUMBLE(1 AS minute) by () from tcp select time, (time // 60) * 60 AS #window select time, #window, sub-aggregated, level 1
-- time_bucket@1: aggregate TUMBLE(1 AS b) by () from tcp select time, (time // 50) * 50 AS #window select time, #window, sub-aggregated, level 1
-- tumble = tumble@1
-- hop = hop@1 select window_start, s
-- bucket = bucket@1
-- time_bucket = time_bucket@1

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

--expect tumble
-- window_start int64 | window_end int64 | n int64
-- -60 | 0 | 1
-- 0 | 60 | 3
-- 60 | 120 | 3
-- 120 | 180 | 1

--duckdb tumble
SELECT CAST(floor(time / 60) * 60 AS BIGINT) AS window_start, window_start + 60 AS window_end, count(*) AS n FROM tcp GROUP BY ALL

--expect hop
-- window_start int64 | s int64
-- -60 | 100
-- -30 | 350
-- 0 | 1750
-- 30 | 1600
-- 60 | 100
-- 90 | -80
-- 120 | -80

--duckdb hop
SELECT ws AS window_start, sum(len) AS s FROM (SELECT *, unnest([CAST(floor(time / 30) * 30 AS BIGINT), CAST(floor(time / 30) * 30 - 30 AS BIGINT)]) AS ws FROM tcp) GROUP BY 1

--expect bucket
-- minute int64 | n int64
-- -60 | 1
-- 0 | 3
-- 60 | 3
-- 120 | 1

--duckdb bucket
SELECT CAST(floor(time / 60) * 60 AS BIGINT) AS minute, count(*) AS n FROM tcp GROUP BY 1

--expect time_bucket
-- b int64 | n int64
-- -50 | 1
-- 0 | 2
-- 50 | 3
-- 100 | 2

--duckdb time_bucket
SELECT CAST(floor(time / 50) * 50 AS BIGINT) AS b, count(*) AS n FROM tcp GROUP BY 1
