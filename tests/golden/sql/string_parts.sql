-- SUBSTRING, LEFT, RIGHT, SPLIT_PART; a part that is not there is empty.

--stream words: time int64, word string; ordered by time

--query q
SELECT time, SUBSTRING(word, 2, 3) AS s, SUBSTRING(word FROM 3) AS rest, LEFT(word, 2) AS l, RIGHT(word, 2) AS r, SPLIT_PART(word, '.', 2) AS p FROM words

--plan
-- q = words select time, SUBSTRING(word, 2, 3) AS s, SUBSTRING(word, 3) AS rest, SUBSTRING(word, 1, 2) AS l, RIGHT(word, 2) AS r, SPLIT_PART(word, '.', 2) AS p

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
-- time int64 | s string | rest string | l string | r string | p string
-- 1 | nab | abranch | An | ch | ''
-- 2 | two | 'wo  words ' | ' t' | 's ' | ''
-- 3 | '' | '' | '' | '' | ''
-- 4 | NULL | NULL | NULL | NULL | NULL
-- 5 | nïc | ïcode | ün | de | ''
-- 6 | 00% | 0% | 10 | 0% | ''
-- 7 | .b. | b.c | a. | .c | b
-- 8 | 't''s' | '''s' | it | '''s' | ''

--duckdb q
same
