-- Trigonometry, roots, logarithms to a base.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query angles
SELECT time, sin(len) AS a, degrees(atan2(len, 2)) AS b, cbrt(len) AS c, trunc(len / 7.0e0) AS d FROM tcp

--query logs dialect=duckdb
SELECT time, log2(8) AS a, log(2, 1024) AS b FROM tcp

--plan
-- angles = tcp select time, SIN(len) AS a, DEGREES(ATAN2(len, 2)) AS b, CBRT(len) AS c, TRUNC(len / 7.0e0) AS d
-- logs = tcp select time, LN(8) / LN(2) AS a, LN(1024) / LN(2) AS b

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

--expect angles
-- time int64 | a float64 | b float64 | c float64 | d float64
-- -7 | -0.5063656411097588 | 88.8542371618249 | 4.641588833612778 | 14.0
-- 1 | -0.8732972972139946 | 89.42706130231652 | 5.848035476425732 | 28.0
-- 5 | -0.26237485370392877 | 87.70938995736148 | 3.6840314986403864 | 7.0
-- 59 | -0.9939019569066535 | 89.92360567258659 | 11.447142425533318 | 214.0
-- 60 | 0.7451131604793488 | 87.13759477388825 | 3.4199518933533937 | 5.0
-- 75 | -0.3048106211022167 | 88.09084756700362 | 3.9148676411688634 | 8.0
-- 118 | NULL | NULL | NULL | NULL
-- 121 | 0.9938886539233752 | -88.56790381583535 | -4.308869380063767 | -11.0

--duckdb angles
same

--expect logs
-- time int64 | a float64 | b float64
-- -7 | 3.0 | 10.0
-- 1 | 3.0 | 10.0
-- 5 | 3.0 | 10.0
-- 59 | 3.0 | 10.0
-- 60 | 3.0 | 10.0
-- 75 | 3.0 | 10.0
-- 118 | 3.0 | 10.0
-- 121 | 3.0 | 10.0

--duckdb logs
SELECT time, log2(8) AS a, 10.0 AS b FROM tcp
