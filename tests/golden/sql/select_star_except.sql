-- * EXCEPT leaves columns out.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT * EXCEPT (flags, destIP) FROM tcp WHERE srcIP = 11

--plan
-- q = tcp where srcIP = 11 select time, srcIP, len

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
-- time int64 | srcIP int64 | len int64
-- 30 | 11 | 50
-- 75 | 11 | 60
-- 118 | 11 | 700

--duckdb q
SELECT * EXCLUDE (flags, destIP) FROM tcp WHERE srcIP = 11
