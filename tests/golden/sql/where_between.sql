-- BETWEEN takes both ends in.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, len FROM tcp WHERE len BETWEEN 60 AND 200 AND time NOT BETWEEN 2 AND 6

--plan
-- q = tcp where ((len >= 60) & (len <= 200)) & NOT ((time >= 2) & (time <= 6)) select time, len

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
-- time int64 | len int64
-- 1 | 100
-- 75 | 60
-- 121 | 80

--duckdb q
same
