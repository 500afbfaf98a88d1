-- A condition that is NULL keeps no row, nor does its opposite.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, srcIP FROM tcp WHERE NOT (len > 90) OR flags IS NULL

--plan
-- q = tcp where NOT (len > 90) | flags IS NULL select time, srcIP

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
-- time int64 | srcIP int64
-- 30 | 11
-- 60 | 10
-- 75 | 11
-- 121 | 10
-- 130 | 12

--duckdb q
same
