-- The suspicious flows of the papers in GSQL: OR_AGGR is BIT_OR.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP, destIP, OR_AGGR(flags) AS orflag, COUNT(*), SUM(len)
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP
HAVING OR_AGGR(flags) = 18

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- q = q@1 where orflag = 18

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
-- tb int64 | srcIP int64 | destIP int64 | orflag int64 | count int64 | sum_len int64
-- 0 | 10 | 20 | 18 | 2 | 300
-- 1 | 11 | 20 | 18 | 1 | 60

--duckdb q
SELECT time // 60 AS tb, srcIP, destIP, bit_or(flags) AS orflag, count(*) AS count, sum(len) AS sum_len
FROM tcp GROUP BY ALL HAVING bit_or(flags) = 18
