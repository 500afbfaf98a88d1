-- Without a name of its own, an input is called by the stream's.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT tcp.*, tcp.time/60 AS tb FROM tcp WHERE tcp.len > 500

--plan
-- q = tcp where len > 500 select time, srcIP, destIP, len, flags, time // 60 AS tb

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
-- time int64 | srcIP int64 | destIP int64 | len int64 | flags int64 | tb int64
-- 59 | 10 | 21 | 1500 | 24 | 0
-- 118 | 11 | 22 | 700 | 16 | 1

--duckdb q
SELECT *, time // 60 AS tb FROM tcp WHERE len > 500
