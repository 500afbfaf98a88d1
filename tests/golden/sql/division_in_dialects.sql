-- What / and % of integers mean depends on the dialect; here they round down.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query ours
SELECT time, len / 7 AS a, len % 7 AS b, -7 / 2 AS c FROM tcp

--query duckdb dialect=duckdb
SELECT time, len / 7 AS a, len % 7 AS b FROM tcp

--query spark dialect=spark
SELECT time, len / 7 AS a, len % 7 AS b, "text" AS c, `len` AS d FROM tcp

--query postgres dialect=postgres
SELECT time, len / 7 AS a, len % 7 AS b FROM tcp

--plan
-- duckdb = tcp select time, len / 7 AS a, CASE WHEN ((len % 7) <> 0) & (len < 0) IS DISTINCT FROM (7 < 0) THEN (len % 7) - 7 ELSE len % 7 END AS b
-- ours = tcp select time, len // 7 AS a, len % 7 AS b, -7 // 2 AS c
-- postgres = tcp select time, CASE WHEN ((len % 7) <> 0) & (len < 0) IS DISTINCT FROM (7 < 0) THEN (len // 7) + 1 ELSE len // 7 END AS a, CASE WHEN ((len % 7) <> 0) & (len < 0) IS DISTINCT FROM (7 < 0) THEN (len % 7) - 7 ELSE len % 7 END AS b
-- spark = tcp select time, len / 7 AS a, CASE WHEN ((len % 7) <> 0) & (len < 0) IS DISTINCT FROM (7 < 0) THEN (len % 7) - 7 ELSE len % 7 END AS b, 'text' AS c, len AS d

--input tcp
-- time | srcIP | len | name
-- -7 | 10 | 100 | 'a-1'
-- 1 | 10 | 200 | 'b-22'
-- 5 | 11 | 50 | NULL
-- ~
-- 59 | 10 | 1500 | 'c'
-- 60 | 10 | 40 | 'a-3'
-- 75 | 11 | 60 | ''
-- ~
-- 118 | 11 | NULL | 'b-4'
-- 121 | 12 | -80 | 'x'

--expect ours
-- time int64 | a int64 | b int64 | c int64
-- -7 | 14 | 2 | -4
-- 1 | 28 | 4 | -4
-- 5 | 7 | 1 | -4
-- 59 | 214 | 2 | -4
-- 60 | 5 | 5 | -4
-- 75 | 8 | 4 | -4
-- 118 | NULL | NULL | -4
-- 121 | -12 | 4 | -4

--duckdb ours
SELECT time, CAST(floor(len / 7) AS BIGINT) AS a, ((len % 7) + 7) % 7 AS b, -4 AS c FROM tcp

--expect duckdb
-- time int64 | a float64 | b int64
-- -7 | 14.285714285714286 | 2
-- 1 | 28.571428571428573 | 4
-- 5 | 7.142857142857143 | 1
-- 59 | 214.28571428571428 | 2
-- 60 | 5.714285714285714 | 5
-- 75 | 8.571428571428571 | 4
-- 118 | NULL | NULL
-- 121 | -11.428571428571429 | -3

--duckdb duckdb
same

--expect spark
-- time int64 | a float64 | b int64 | c string | d int64
-- -7 | 14.285714285714286 | 2 | text | 100
-- 1 | 28.571428571428573 | 4 | text | 200
-- 5 | 7.142857142857143 | 1 | text | 50
-- 59 | 214.28571428571428 | 2 | text | 1500
-- 60 | 5.714285714285714 | 5 | text | 40
-- 75 | 8.571428571428571 | 4 | text | 60
-- 118 | NULL | NULL | text | NULL
-- 121 | -11.428571428571429 | -3 | text | -80

--duckdb spark
SELECT time, len / 7 AS a, len % 7 AS b, 'text' AS c, len AS d FROM tcp

--expect postgres
-- time int64 | a int64 | b int64
-- -7 | 14 | 2
-- 1 | 28 | 4
-- 5 | 7 | 1
-- 59 | 214 | 2
-- 60 | 5 | 5
-- 75 | 8 | 4
-- 118 | NULL | NULL
-- 121 | -11 | -3

--duckdb postgres
SELECT time, len // 7 AS a, len % 7 AS b FROM tcp
