-- Groups by fields, aggregates of elements, lists in results.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query by_field
SELECT window_start, p.a AS a, count(*) AS c, array_agg(id) AS ids FROM doc GROUP BY TUMBLE(ts, '10 seconds'), p.a

--query structs
SELECT window_start, array_agg(p) AS ps, max_by(p, id) AS last FROM doc GROUP BY TUMBLE(ts, '10 seconds')

--query lists
SELECT id, list_sort(list_concat(xs, [9, 0])) AS a, list_sum(xs) AS b, list_max(xs) AS c, array_join(split('a-b', '-'), '+') AS d FROM doc

--query joined
SELECT a.id, b.id AS other, a.p, b.xs FROM doc a JOIN doc b ON a.p.a = b.p.a AND a.ts <= b.ts AND b.ts <= a.ts + INTERVAL '20' SECOND

--plan
-- by_field@1: aggregate TUMBLE(10000000) by (p.a) from doc, sub-aggregated, level 1
-- joined@1: INNER JOIN ON p.a = p.a WHERE (ts <= ts_b) & (ts_b <= (ts + INTERVAL '0:00:20')) AS b by (p.a) = (p.a) from doc and doc, level 1
-- structs@1: aggregate TUMBLE(10000000) by () from doc, sub-aggregated, level 1
-- lists = doc select id, LIST_SORT(LIST_CONCAT(xs, [9, 0])) AS a, LIST_SUM(xs) AS b, LIST_MAX(xs) AS c, LIST_JOIN(SPLIT('a-b', '-'), '+') AS d
-- by_field = by_field@1 select window_start, a, c, ids
-- joined = joined@1 select id, id_b AS other, p, xs_b AS xs
-- structs = structs@1 select window_start, ps, last

--input doc
-- ts | id | p | xs | j
-- 2026-01-01 00:00:01 | 1 | {"a": 1, "b": "x"} | [1, 2] | '{"a": {"b": "5", "n": 7}, "l": [1, 2]}'
-- 2026-01-01 00:00:02 | 2 | {"a": 2, "b": null} | [] | '{"a": {"b": "6"}}'
-- ~
-- 2026-01-01 00:00:12 | 3 | {"a": 1, "b": "y"} | [3] | NULL
-- 2026-01-01 00:00:25 | 4 | {"a": 3, "b": "x"} | NULL | '{"a": null}'

--expect by_field
-- window_start timestamp | a int64 | c int64 | ids list(int64)
-- 2026-01-01 00:00:00 | 1 | 1 | [1]
-- 2026-01-01 00:00:00 | 2 | 1 | [2]
-- 2026-01-01 00:00:10 | 1 | 1 | [3]
-- 2026-01-01 00:00:20 | 3 | 1 | [4]

--duckdb by_field
SELECT time_bucket(INTERVAL '10 seconds', ts) AS window_start, p.a AS a, count(*) AS c, list(id ORDER BY ts) AS ids FROM doc GROUP BY 1, 2

--expect structs
-- window_start timestamp | ps list(struct(a int64, b string)) | last struct(a int64, b string)
-- 2026-01-01 00:00:00 | [{"a": 1, "b": "x"}, {"a": 2, "b": null}] | {"a": 2, "b": null}
-- 2026-01-01 00:00:10 | [{"a": 1, "b": "y"}] | {"a": 1, "b": "y"}
-- 2026-01-01 00:00:20 | [{"a": 3, "b": "x"}] | {"a": 3, "b": "x"}

--expect lists
-- id int64 | a list(int64) | b int64 | c int64 | d string
-- 1 | [0, 1, 2, 9] | 3 | 2 | a+b
-- 2 | [0, 9] | NULL | NULL | a+b
-- 3 | [0, 3, 9] | 3 | 3 | a+b
-- 4 | [0, 9] | NULL | NULL | a+b

--duckdb lists
SELECT id, list_sort(list_concat(xs, [9, 0])) AS a, list_sum(xs) AS b, list_max(xs) AS c, 'a+b' AS d FROM doc

--expect joined
-- id int64 | other int64 | p struct(a int64, b string) | xs list(int64)
-- 1 | 1 | {"a": 1, "b": "x"} | [1, 2]
-- 1 | 3 | {"a": 1, "b": "x"} | [3]
-- 2 | 2 | {"a": 2, "b": null} | []
-- 3 | 3 | {"a": 1, "b": "y"} | [3]
-- 4 | 4 | {"a": 3, "b": "x"} | NULL

--duckdb joined
same
