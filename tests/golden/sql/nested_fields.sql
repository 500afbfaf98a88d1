-- Fields of structs and elements of lists, in all spellings.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query fields
SELECT id, p.a, p['b'] AS b, doc.p.a + 1 AS c FROM doc

--query elements
SELECT id, xs[1] AS a, xs[-1] AS b, xs[9] AS c, len(xs) AS d FROM doc

--query from_zero dialect=spark
SELECT id, xs[0] AS a, size(xs) AS b FROM doc

--query made
SELECT id, {'x': id, 'y': p.b} AS s, [id, id + 1] AS l, struct(id AS i) AS t FROM doc

--query filtered
SELECT id, xs, p FROM doc WHERE list_contains(xs, 3) OR p.b = 'x'

--plan
-- elements = doc select id, ELEMENT(xs, 1) AS a, ELEMENT(xs, -1) AS b, ELEMENT(xs, 9) AS c, LIST_LENGTH(xs) AS d
-- fields = doc select id, p.a AS a, p.b AS b, p.a + 1 AS c
-- from_zero = doc select id, ELEMENT(xs, 1) AS a, LIST_LENGTH(xs) AS b
-- made = doc select id, {'x': id, 'y': p.b} AS s, [id, id + 1] AS l, {'i': id} AS t
-- filtered = doc where LIST_CONTAINS(xs, 3) | (p.b = 'x') select id, xs, p

--input doc
-- ts | id | p | xs | j
-- 2026-01-01 00:00:01 | 1 | {"a": 1, "b": "x"} | [1, 2] | '{"a": {"b": "5", "n": 7}, "l": [1, 2]}'
-- 2026-01-01 00:00:02 | 2 | {"a": 2, "b": null} | [] | '{"a": {"b": "6"}}'
-- ~
-- 2026-01-01 00:00:12 | 3 | {"a": 1, "b": "y"} | [3] | NULL
-- 2026-01-01 00:00:25 | 4 | {"a": 3, "b": "x"} | NULL | '{"a": null}'

--expect fields
-- id int64 | a int64 | b string | c int64
-- 1 | 1 | x | 2
-- 2 | 2 | NULL | 3
-- 3 | 1 | y | 2
-- 4 | 3 | x | 4

--duckdb fields
SELECT id, p.a, p['b'] AS b, doc.p.a + 1 AS c FROM doc

--expect elements
-- id int64 | a int64 | b int64 | c int64 | d int64
-- 1 | 1 | 2 | NULL | 2
-- 2 | NULL | NULL | NULL | 0
-- 3 | 3 | 3 | NULL | 1
-- 4 | NULL | NULL | NULL | NULL

--duckdb elements
SELECT id, xs[1] AS a, xs[-1] AS b, xs[9] AS c, len(xs) AS d FROM doc

--expect from_zero
-- id int64 | a int64 | b int64
-- 1 | 1 | 2
-- 2 | NULL | 0
-- 3 | 3 | 1
-- 4 | NULL | NULL

--duckdb from_zero
SELECT id, xs[1] AS a, len(xs) AS b FROM doc

--expect made
-- id int64 | s struct(x int64, y string) | l list(int64) | t struct(i int64)
-- 1 | {"x": 1, "y": "x"} | [1, 2] | {"i": 1}
-- 2 | {"x": 2, "y": null} | [2, 3] | {"i": 2}
-- 3 | {"x": 3, "y": "y"} | [3, 4] | {"i": 3}
-- 4 | {"x": 4, "y": "x"} | [4, 5] | {"i": 4}

--duckdb made
SELECT id, {'x': id, 'y': p.b} AS s, [id, id + 1] AS l, {'i': id} AS t FROM doc

--expect filtered
-- id int64 | xs list(int64) | p struct(a int64, b string)
-- 1 | [1, 2] | {"a": 1, "b": "x"}
-- 3 | [3] | {"a": 1, "b": "y"}
-- 4 | NULL | {"a": 3, "b": "x"}

--duckdb filtered
same
