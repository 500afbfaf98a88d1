-- GSQL's other names: AND_AGGR and XOR_AGGR.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, AND_AGGR(flags) AS a, XOR_AGGR(flags) AS x FROM tcp GROUP BY time/60 AS tb

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by () from tcp, sub-aggregated, level 1
-- q = q@1

--input tcp
-- time | srcIP | destIP | len | flags
-- 1 | 10 | 20 | 100 | 2
-- 5 | 10 | 20 | 200 | 16
-- 30 | 11 | 20 | 50 | 1
-- ~
-- 59 | 10 | 21 | 1500 | 24
-- 60 | 10 | 20 | 40 | 2
-- 75 | 11 | 20 | 60 | 18
-- ~
-- 118 | 11 | 22 | 700 | 16
-- 121 | 10 | 20 | 80 | 17
-- 130 | 12 | 20 | NULL | NULL

--expect q
-- tb int64 | a int64 | x int64
-- 0 | 0 | 11
-- 1 | 0 | 0
-- 2 | 17 | 17

--duckdb q
SELECT time // 60 AS tb, bit_and(flags) AS a, bit_xor(flags) AS x FROM tcp GROUP BY ALL
