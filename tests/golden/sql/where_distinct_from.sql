-- IS DISTINCT FROM takes NULL for a value.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, len IS DISTINCT FROM NULL AS known, flags IS NOT DISTINCT FROM 2 AS two FROM tcp WHERE len IS DISTINCT FROM 40

--plan
-- q = tcp where len IS DISTINCT FROM 40 select time, len IS DISTINCT FROM NULL AS known, NOT (flags IS DISTINCT FROM 2) AS two

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
-- time int64 | known boolean | two boolean
-- 1 | true | true
-- 5 | true | false
-- 30 | true | false
-- 59 | true | false
-- 75 | true | false
-- 118 | true | false
-- 121 | true | false
-- 130 | false | false

--duckdb q
same
