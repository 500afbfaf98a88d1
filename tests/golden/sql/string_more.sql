-- Places, padding, codes and lists of texts.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query places
SELECT time, position('-' IN name) AS a, strpos(name, 'b') AS b, locate('2', name) AS c, instr(name, 'x') AS d FROM tcp

--query padded
SELECT time, lpad(name, 5, '.') AS a, rpad(name, 2, '.') AS b, reverse(name) AS c, repeat(name, 2) AS d FROM tcp

--query joined
SELECT time, concat_ws('/', name, 'z', NULL) AS a, translate(name, 'ab', 'x') AS b, hex(name) AS c, base64(name) AS d FROM tcp

--query split
SELECT time, split(name, '-') AS a, split(name, '-')[1] AS b, len(split(name, '-')) AS c, array_to_string(split(name, '-'), '+') AS d FROM tcp

--query nulls
SELECT time, nvl(name, '?') AS a, nvl2(len, 1, 0) AS b, isnull(name) AS c, iff(len > 50, 'big', 'small') AS d FROM tcp

--plan
-- joined = tcp select time, CONCAT_WS('/', name, 'z', NULL) AS a, TRANSLATE(name, 'ab', 'x') AS b, HEX(name) AS c, BASE64(name) AS d
-- nulls = tcp select time, COALESCE(name, '?') AS a, CASE WHEN len IS NOT NULL THEN 1 ELSE 0 END AS b, name IS NULL AS c, CASE WHEN len > 50 THEN 'big' ELSE 'small' END AS d
-- padded = tcp select time, LPAD(name, 5, '.') AS a, RPAD(name, 2, '.') AS b, REVERSE(name) AS c, REPEAT(name, 2) AS d
-- places = tcp select time, STRPOS(name, '-') AS a, STRPOS(name, 'b') AS b, STRPOS(name, '2') AS c, STRPOS(name, 'x') AS d
-- split = tcp select time, SPLIT(name, '-') AS a, ELEMENT(SPLIT(name, '-'), 1) AS b, LIST_LENGTH(SPLIT(name, '-')) AS c, LIST_JOIN(SPLIT(name, '-'), '+') AS d

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

--expect places
-- time int64 | a int64 | b int64 | c int64 | d int64
-- -7 | 2 | 0 | 0 | 0
-- 1 | 2 | 1 | 3 | 0
-- 5 | NULL | NULL | NULL | NULL
-- 59 | 0 | 0 | 0 | 0
-- 60 | 2 | 0 | 0 | 0
-- 75 | 0 | 0 | 0 | 0
-- 118 | 2 | 1 | 0 | 0
-- 121 | 0 | 0 | 0 | 1

--duckdb places
SELECT time, position('-' IN name) AS a, strpos(name, 'b') AS b, strpos(name, '2') AS c, strpos(name, 'x') AS d FROM tcp

--expect padded
-- time int64 | a string | b string | c string | d string
-- -7 | ..a-1 | a- | 1-a | a-1a-1
-- 1 | .b-22 | b- | 22-b | b-22b-22
-- 5 | NULL | NULL | NULL | NULL
-- 59 | ....c | c. | c | cc
-- 60 | ..a-3 | a- | 3-a | a-3a-3
-- 75 | ..... | .. | '' | ''
-- 118 | ..b-4 | b- | 4-b | b-4b-4
-- 121 | ....x | x. | x | xx

--duckdb padded
same

--expect joined
-- time int64 | a string | b string | c string | d string
-- -7 | a-1/z | x-1 | 612D31 | YS0x
-- 1 | b-22/z | -22 | 622D3232 | Yi0yMg==
-- 5 | z | NULL | NULL | NULL
-- 59 | c/z | c | 63 | Yw==
-- 60 | a-3/z | x-3 | 612D33 | YS0z
-- 75 | /z | '' | '' | ''
-- 118 | b-4/z | -4 | 622D34 | Yi00
-- 121 | x/z | x | 78 | eA==

--duckdb joined
SELECT time, concat_ws('/', name, 'z', NULL) AS a, translate(name, 'ab', 'x') AS b, hex(name) AS c, to_base64(encode(name)) AS d FROM tcp

--expect split
-- time int64 | a list(string) | b string | c int64 | d string
-- -7 | ["a", "1"] | a | 2 | a+1
-- 1 | ["b", "22"] | b | 2 | b+22
-- 5 | NULL | NULL | NULL | NULL
-- 59 | ["c"] | c | 1 | c
-- 60 | ["a", "3"] | a | 2 | a+3
-- 75 | [""] | '' | 1 | ''
-- 118 | ["b", "4"] | b | 2 | b+4
-- 121 | ["x"] | x | 1 | x

--duckdb split
SELECT time, string_split(name, '-') AS a, string_split(name, '-')[1] AS b, len(string_split(name, '-')) AS c, array_to_string(string_split(name, '-'), '+') AS d FROM tcp

--expect nulls
-- time int64 | a string | b int64 | c boolean | d string
-- -7 | a-1 | 1 | false | big
-- 1 | b-22 | 1 | false | big
-- 5 | ? | 1 | true | small
-- 59 | c | 1 | false | big
-- 60 | a-3 | 1 | false | small
-- 75 | '' | 1 | false | big
-- 118 | b-4 | 0 | false | small
-- 121 | x | 1 | false | small

--duckdb nulls
SELECT time, coalesce(name, '?') AS a, CASE WHEN len IS NOT NULL THEN 1 ELSE 0 END AS b, name IS NULL AS c, CASE WHEN len > 50 THEN 'big' ELSE 'small' END AS d FROM tcp
