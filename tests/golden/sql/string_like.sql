-- LIKE with % and _, NOT LIKE, ILIKE.

--stream words: time int64, word string; ordered by time

--query q
SELECT time, word LIKE 'A%' AS starts, word LIKE '%.%.%' AS dots, word NOT LIKE '_____%' AS short, word ILIKE 'ANA%' AS any_case FROM words

--plan
-- q = words select time, word LIKE 'A%' AS starts, word LIKE '%.%.%' AS dots, NOT (word LIKE '_____%') AS short, LOWER(word) LIKE 'ana%' AS any_case

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
-- time int64 | starts boolean | dots boolean | short boolean | any_case boolean
-- 1 | true | false | false | true
-- 2 | false | false | false | false
-- 3 | false | false | true | false
-- 4 | NULL | NULL | NULL | NULL
-- 5 | false | false | false | false
-- 6 | false | false | true | false
-- 7 | false | true | false | false
-- 8 | false | false | true | false

--duckdb q
same
