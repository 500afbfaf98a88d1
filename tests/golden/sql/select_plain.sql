-- Computed columns of every row; no state, no window.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, srcIP * 2 AS twice, len - 1 AS less, 'x' AS constant FROM tcp

--plan
-- q = tcp select time, srcIP * 2 AS twice, len - 1 AS less, 'x' AS constant

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
-- time int64 | twice int64 | less int64 | constant string
-- 1 | 20 | 99 | x
-- 5 | 20 | 199 | x
-- 30 | 22 | 49 | x
-- 59 | 20 | 1499 | x
-- 60 | 20 | 39 | x
-- 75 | 22 | 59 | x
-- 118 | 22 | 699 | x
-- 121 | 20 | 79 | x
-- 130 | 24 | NULL | x

--duckdb q
same
