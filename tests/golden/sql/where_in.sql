-- IN and NOT IN with constants; NOT IN with a NULL among them keeps nothing.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, 'in' AS how FROM tcp WHERE srcIP IN (11, 12) AND destIP NOT IN (22)
UNION ALL SELECT time, 'never' AS how FROM tcp WHERE srcIP NOT IN (11, NULL)

--plan
-- q = tcp where srcIP IN (11, 12) & NOT (destIP IN (22)) select time, 'in' AS how and tcp where NOT (srcIP IN (11, NULL)) select time, 'never' AS how

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
-- time int64 | how string
-- 30 | in
-- 75 | in
-- 130 | in

--duckdb q
same
