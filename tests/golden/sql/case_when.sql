-- CASE WHEN: the first condition that is true.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, CASE WHEN len >= 700 THEN 'large' WHEN len >= 100 THEN 'middle' WHEN len IS NULL THEN 'none' ELSE 'small' END AS size FROM tcp

--plan
-- q = tcp select time, CASE WHEN len >= 700 THEN 'large' WHEN len >= 100 THEN 'middle' WHEN len IS NULL THEN 'none' ELSE 'small' END AS size

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
-- time int64 | size string
-- 1 | middle
-- 5 | middle
-- 30 | small
-- 59 | large
-- 60 | small
-- 75 | small
-- 118 | large
-- 121 | small
-- 130 | none

--duckdb q
same
