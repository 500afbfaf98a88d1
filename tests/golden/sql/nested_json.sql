-- Values in JSON texts.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query arrows
SELECT id, j -> 'a' ->> 'b' AS a, j ->> 'l' AS b, CAST(j -> 'a' ->> 'n' AS BIGINT) AS c FROM doc

--query paths
SELECT id, json_extract_string(j, '$.a.b') AS a, get_json_object(j, '$.l[1]') AS b, json_value(j, '$.a.n') AS c FROM doc

--query postgres dialect=postgres
SELECT id, j #>> '{a,b}' AS a, json_extract_path_text(j, 'a', 'b') AS b FROM doc

--plan
-- arrows = doc select id, JSON_EXTRACT_STRING(j, '$[''a''][''b'']') AS a, JSON_EXTRACT_STRING(j, '$[''l'']') AS b, CAST(JSON_EXTRACT_STRING(j, '$[''a''][''n'']') AS int64) AS c
-- paths = doc select id, JSON_EXTRACT_STRING(j, '$.a.b') AS a, JSON_EXTRACT_STRING(j, '$.l[1]') AS b, JSON_EXTRACT_STRING(j, '$.a.n') AS c
-- postgres = doc select id, JSON_EXTRACT_STRING(j, '$[''a''][''b'']') AS a, JSON_EXTRACT_STRING(j, '$[''a''][''b'']') AS b

--input doc
-- ts | id | p | xs | j
-- 2026-01-01 00:00:01 | 1 | {"a": 1, "b": "x"} | [1, 2] | '{"a": {"b": "5", "n": 7}, "l": [1, 2]}'
-- 2026-01-01 00:00:02 | 2 | {"a": 2, "b": null} | [] | '{"a": {"b": "6"}}'
-- ~
-- 2026-01-01 00:00:12 | 3 | {"a": 1, "b": "y"} | [3] | NULL
-- 2026-01-01 00:00:25 | 4 | {"a": 3, "b": "x"} | NULL | '{"a": null}'

--expect arrows
-- id int64 | a string | b string | c int64
-- 1 | 5 | [1,2] | 7
-- 2 | 6 | NULL | NULL
-- 3 | NULL | NULL | NULL
-- 4 | NULL | NULL | NULL

--duckdb arrows
SELECT id, j -> 'a' ->> 'b' AS a, j ->> 'l' AS b, CAST(j -> 'a' ->> 'n' AS BIGINT) AS c FROM (SELECT id, CAST(j AS JSON) AS j FROM doc)

--expect paths
-- id int64 | a string | b string | c string
-- 1 | 5 | 2 | 7
-- 2 | 6 | NULL | NULL
-- 3 | NULL | NULL | NULL
-- 4 | NULL | NULL | NULL

--duckdb paths
SELECT id, json_extract_string(j, '$.a.b') AS a, json_extract_string(j, '$.l[1]') AS b, json_extract_string(j, '$.a.n') AS c FROM doc

--expect postgres
-- id int64 | a string | b string
-- 1 | 5 | 5
-- 2 | 6 | 6
-- 3 | NULL | NULL
-- 4 | NULL | NULL

--duckdb postgres
SELECT id, json_extract_string(j, '$.a.b') AS a, json_extract_string(j, '$.a.b') AS b FROM doc
