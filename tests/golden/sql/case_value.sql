-- CASE x WHEN, and what comes without ELSE.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, CASE flags WHEN 2 THEN 'syn' WHEN 16 THEN 'ack' END AS what, IF(len > 90, 1, 0) AS large FROM tcp

--plan
-- q = tcp select time, CASE WHEN flags = 2 THEN 'syn' WHEN flags = 16 THEN 'ack' ELSE NULL END AS what, CASE WHEN len > 90 THEN 1 ELSE 0 END AS large

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
-- time int64 | what string | large int64
-- 1 | syn | 1
-- 5 | ack | 1
-- 30 | NULL | 0
-- 59 | NULL | 1
-- 60 | syn | 0
-- 75 | NULL | 0
-- 118 | ack | 1
-- 121 | NULL | 0
-- 130 | NULL | 0

--duckdb q
same
