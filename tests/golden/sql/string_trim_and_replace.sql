-- TRIM takes spaces or the characters given, REPLACE every occurrence.

--stream words: time int64, word string; ordered by time

--query q
SELECT time, TRIM(word) AS t, LTRIM(word, 'Aa') AS l, RTRIM(word, 'hs ') AS r, REPLACE(word, 'a', '<a>') AS x FROM words

--plan
-- q = words select time, TRIM(word) AS t, LTRIM(word, 'Aa') AS l, RTRIM(word, 'hs ') AS r, REPLACE(word, 'a', '<a>') AS x

--input words
-- time | word
-- 1 | Anabranch
-- 2 | ' two  words '
-- 3 | ''
-- 4 | NULL
-- ~
-- 5 | ünïcode
-- 6 | 100%
-- 7 | a.b.c
-- 8 | 'it''s'

--expect q
-- time int64 | t string | l string | r string | x string
-- 1 | Anabranch | nabranch | Anabranc | An<a>br<a>nch
-- 2 | two  words | ' two  words ' | ' two  word' | ' two  words '
-- 3 | '' | '' | '' | ''
-- 4 | NULL | NULL | NULL | NULL
-- 5 | ünïcode | ünïcode | ünïcode | ünïcode
-- 6 | 100% | 100% | 100% | 100%
-- 7 | a.b.c | .b.c | a.b.c | <a>.b.c
-- 8 | 'it''s' | 'it''s' | 'it''' | 'it''s'

--duckdb q
same
