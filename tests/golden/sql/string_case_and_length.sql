-- UPPER, LOWER, LENGTH in characters, CONCAT.

--stream words: time int64, word string; ordered by time

--query q
SELECT time, LOWER(word) AS l, LENGTH(word) AS n, word || '!' AS loud, CONCAT(word, '-', word) AS twice FROM words

--plan
-- q = words select time, LOWER(word) AS l, LENGTH(word) AS n, CONCAT(word, '!') AS loud, CONCAT(word, '-', word) AS twice

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
-- time int64 | l string | n int64 | loud string | twice string
-- 1 | anabranch | 9 | Anabranch! | Anabranch-Anabranch
-- 2 | ' two  words ' | 12 | ' two  words !' | ' two  words - two  words '
-- 3 | '' | 0 | ! | -
-- 4 | NULL | NULL | NULL | NULL
-- 5 | ünïcode | 7 | ünïcode! | ünïcode-ünïcode
-- 6 | 100% | 4 | 100%! | 100%-100%
-- 7 | a.b.c | 5 | a.b.c! | a.b.c-a.b.c
-- 8 | 'it''s' | 4 | 'it''s!' | 'it''s-it''s'

--duckdb q
SELECT time, lower(word) AS l, length(word) AS n, word || '!' AS loud, word || '-' || word AS twice FROM words
