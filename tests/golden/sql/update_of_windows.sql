-- emit=update with a window: each epoch gives the windows so far.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time
--epochs matter

--query minutes emit=update
SELECT tb, COUNT(*) AS n, MAX(len) AS top FROM tcp GROUP BY time/60 AS tb

--plan
-- minutes@1: aggregate TUMBLE(60 AS tb) on update by () from tcp, sub-aggregated, level 1
-- minutes = minutes@1

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

--expect minutes
-- tb int64 | n int64 | top int64
-- 0 | 3 | 200
-- 0 | 4 | 1500
-- 1 | 2 | 60
-- 1 | 3 | 700
-- 2 | 2 | 80
