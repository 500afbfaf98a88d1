-- COALESCE, IFNULL, NULLIF; CONCAT and || of a NULL are NULL.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT time, COALESCE(len, flags, -1) AS c, IFNULL(len, 0) AS i, NULLIF(srcIP, 10) AS n, len + flags AS s, 'len ' || CAST(len AS varchar) AS t FROM tcp

--plan
-- q = tcp select time, COALESCE(len, flags, -1) AS c, COALESCE(len, 0) AS i, CASE WHEN srcIP = 10 THEN NULL ELSE srcIP END AS n, len + flags AS s, CONCAT('len ', CAST(len AS string)) AS t

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
-- time int64 | c int64 | i int64 | n int64 | s int64 | t string
-- 1 | 100 | 100 | NULL | 102 | len 100
-- 5 | 200 | 200 | NULL | 216 | len 200
-- 30 | 50 | 50 | 11 | 51 | len 50
-- 59 | 1500 | 1500 | NULL | 1524 | len 1500
-- 60 | 40 | 40 | NULL | 42 | len 40
-- 75 | 60 | 60 | 11 | 78 | len 60
-- 118 | 700 | 700 | 11 | 716 | len 700
-- 121 | 80 | 80 | NULL | 97 | len 80
-- 130 | -1 | 0 | 12 | NULL | NULL

--duckdb q
same
