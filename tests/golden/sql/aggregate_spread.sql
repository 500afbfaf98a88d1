-- VAR and STDDEV are those of a sample: one value has none.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tb, srcIP, VAR(len) AS v, STDDEV(len) AS s FROM tcp GROUP BY time/60 AS tb, srcIP

--plan
-- q@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
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
-- tb int64 | srcIP int64 | v float64 | s float64
-- 0 | 10 | 610000.0 | 781.0249675906655
-- 0 | 11 | NULL | NULL
-- 1 | 10 | NULL | NULL
-- 1 | 11 | 204800.0 | 452.54833995939043
-- 2 | 10 | NULL | NULL
-- 2 | 12 | NULL | NULL

--duckdb q
SELECT time // 60 AS tb, srcIP, var_samp(len) AS v, stddev_samp(len) AS s FROM tcp GROUP BY ALL
