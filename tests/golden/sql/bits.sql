-- Bit operators and hexadecimal numbers.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, flags & 0x10 AS a, flags | 1 AS o, flags ^ 3 AS x, flags << 2 AS up, flags >> 1 AS down, ~flags AS n FROM tcp

--plan
-- q = tcp select time, flags & 16 AS a, flags | 1 AS o, flags ^ 3 AS x, flags << 2 AS up, flags >> 1 AS down, NOT (flags) AS n

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
-- time int64 | a int64 | o int64 | x int64 | up int64 | down int64 | n int64
-- 1 | 0 | 3 | 1 | 8 | 1 | -3
-- 5 | 16 | 17 | 19 | 64 | 8 | -17
-- 30 | 0 | 1 | 2 | 4 | 0 | -2
-- 59 | 16 | 25 | 27 | 96 | 12 | -25
-- 60 | 0 | 3 | 1 | 8 | 1 | -3
-- 75 | 16 | 19 | 17 | 72 | 9 | -19
-- 118 | 16 | 17 | 19 | 64 | 8 | -17
-- 121 | 16 | 17 | 18 | 68 | 8 | -18
-- 130 | NULL | NULL | NULL | NULL | NULL | NULL

--duckdb q
SELECT time, flags & 16 AS a, flags | 1 AS o, xor(flags, 3) AS x, flags << 2 AS up, flags >> 1 AS down, ~flags AS n FROM tcp
