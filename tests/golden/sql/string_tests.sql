-- STARTS_WITH, ENDS_WITH and CONTAINS take texts as they are.

--stream words: time int64, word string; ordered by time

--query q
SELECT time, STARTS_WITH(word, 'a') AS s, ENDS_WITH(word, '%') AS e, CONTAINS(word, '.') AS c FROM words

--plan
-- q = words select time, STARTS_WITH(word, 'a') AS s, ENDS_WITH(word, '%') AS e, CONTAINS(word, '.') AS c

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
-- time int64 | s boolean | e boolean | c boolean
-- 1 | false | false | false
-- 2 | false | false | false
-- 3 | false | false | false
-- 4 | NULL | NULL | NULL
-- 5 | false | false | false
-- 6 | false | true | false
-- 7 | true | false | true
-- 8 | false | false | false

--duckdb q
same
