-- Regular expressions.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query found
SELECT time, regexp_matches(name, '^[ab]') AS a, name ~ '[0-9]+$' AS b, regexp_like(name, 'C') AS c FROM tcp

--query extracted
SELECT time, regexp_extract(name, '([a-z])-([0-9]+)', 2) AS a, regexp_extract(name, '[0-9]') AS b FROM tcp

--query replaced
SELECT time, regexp_replace(name, '[0-9]', 'x') AS a, regexp_replace(name, '[0-9]', 'x', 'g') AS b, regexp_replace(name, '([a-z])-', '\1\1') AS c FROM tcp

--query rlike dialect=spark
SELECT time, name RLIKE 'b' AS a, regexp_replace(name, '[0-9]', 'x') AS b, regexp_extract(name, '([a-z])-') AS c FROM tcp

--plan
-- extracted = tcp select time, REGEXP_EXTRACT(name, '([a-z])-([0-9]+)', 2) AS a, REGEXP_EXTRACT(name, '[0-9]') AS b
-- found = tcp select time, REGEXP_MATCHES(name, '^[ab]') AS a, REGEXP_MATCHES(name, '[0-9]+$') AS b, REGEXP_MATCHES(name, 'C') AS c
-- replaced = tcp select time, REGEXP_REPLACE(name, '[0-9]', 'x') AS a, REGEXP_REPLACE(name, '[0-9]', 'x', 'g') AS b, REGEXP_REPLACE(name, '([a-z])-', '\1\1') AS c
-- rlike = tcp select time, REGEXP_MATCHES(name, 'b') AS a, REGEXP_REPLACE(name, '[0-9]', 'x', 'g') AS b, REGEXP_EXTRACT(name, '([a-z])-', 1) AS c

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

--expect found
-- time int64 | a boolean | b boolean | c boolean
-- -7 | true | true | false
-- 1 | true | true | false
-- 5 | NULL | NULL | NULL
-- 59 | false | false | false
-- 60 | true | true | false
-- 75 | false | false | false
-- 118 | true | true | false
-- 121 | false | false | false

--duckdb found
SELECT time, regexp_matches(name, '^[ab]') AS a, regexp_matches(name, '[0-9]+$') AS b, regexp_matches(name, 'C') AS c FROM tcp

--expect extracted
-- time int64 | a string | b string
-- -7 | 1 | 1
-- 1 | 22 | 2
-- 5 | NULL | NULL
-- 59 | '' | ''
-- 60 | 3 | 3
-- 75 | '' | ''
-- 118 | 4 | 4
-- 121 | '' | ''

--duckdb extracted
same

--expect replaced
-- time int64 | a string | b string | c string
-- -7 | a-x | a-x | aa1
-- 1 | b-x2 | b-xx | bb22
-- 5 | NULL | NULL | NULL
-- 59 | c | c | c
-- 60 | a-x | a-x | aa3
-- 75 | '' | '' | ''
-- 118 | b-x | b-x | bb4
-- 121 | x | x | x

--duckdb replaced
same

--expect rlike
-- time int64 | a boolean | b string | c string
-- -7 | false | a-x | a
-- 1 | true | b-xx | b
-- 5 | NULL | NULL | NULL
-- 59 | false | c | ''
-- 60 | false | a-x | a
-- 75 | false | '' | ''
-- 118 | true | b-x | b
-- 121 | false | x | ''

--duckdb rlike
SELECT time, regexp_matches(name, 'b') AS a, regexp_replace(name, '[0-9]', 'x', 'g') AS b, regexp_extract(name, '([a-z])-', 1) AS c FROM tcp
