-- JSON in a text, with the casts that PostgreSQL and RisingWave need.

--stream events: time int64, j string; ordered by time

--query q dialect=postgres
SELECT time, j::jsonb ->> 'd' AS d, (j::jsonb -> 'a' ->> 'b')::INT AS b, CAST(j AS JSON) #>> '{c,1}' AS c FROM events

--plan
-- q = events select time, JSON_EXTRACT_STRING(j, '$[''d'']') AS d, CAST(JSON_EXTRACT_STRING(j, '$[''a''][''b'']') AS int32) AS b, JSON_EXTRACT_STRING(j, '$[''c''][1]') AS c

--input events
-- time | j
-- 1 | '{"a": {"b": 7}, "c": [1, 2], "d": "x"}'
-- 2 | '{"a": {}, "c": []}'
-- ~
-- 3 | NULL

--expect q
-- time int64 | d string | b int32 | c string
-- 1 | x | 7 | 2
-- 2 | NULL | NULL | NULL
-- 3 | NULL | NULL | NULL

--duckdb q
SELECT time, j ->> 'd' AS d, (j -> 'a' ->> 'b')::INT AS b, j ->> '$.c[1]' AS c FROM events
