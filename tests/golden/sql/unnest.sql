-- Elements of lists as rows, as each system writes it.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query cross
SELECT d.id, u.x FROM doc d CROSS JOIN UNNEST(d.xs) AS u(x)

--query comma
SELECT id, x FROM doc, UNNEST(xs) AS u(x) WHERE x > 1

--query selected
SELECT id, unnest(xs) AS x FROM doc

--query exploded dialect=spark
SELECT id, x FROM doc LATERAL VIEW explode(xs) u AS x

--query outer dialect=spark
SELECT id, explode_outer(xs) AS x FROM doc

--query counted
SELECT window_start, x, count(*) AS c FROM (SELECT ts, unnest(xs) AS x FROM doc) GROUP BY TUMBLE(ts, '1 minute'), x

--plan
-- counted@1: aggregate TUMBLE(60000000) by (x) from doc unnest xs as x select ts, x, sub-aggregated, level 1
-- cross = doc unnest xs as x select id, x
-- exploded = doc unnest xs as x select id, x
-- outer = doc unnest xs as x select id, x
-- selected = doc unnest xs as x select id, x
-- comma = doc unnest xs as x where x > 1 select id, x
-- counted = counted@1 select window_start, x, c

--input doc
-- ts | id | p | xs | j
-- 2026-01-01 00:00:01 | 1 | {"a": 1, "b": "x"} | [1, 2] | '{"a": {"b": "5", "n": 7}, "l": [1, 2]}'
-- 2026-01-01 00:00:02 | 2 | {"a": 2, "b": null} | [] | '{"a": {"b": "6"}}'
-- ~
-- 2026-01-01 00:00:12 | 3 | {"a": 1, "b": "y"} | [3] | NULL
-- 2026-01-01 00:00:25 | 4 | {"a": 3, "b": "x"} | NULL | '{"a": null}'

--expect cross
-- id int64 | x int64
-- 1 | 1
-- 1 | 2
-- 3 | 3

--duckdb cross
SELECT d.id, u.x FROM doc d, UNNEST(d.xs) AS u(x)

--expect comma
-- id int64 | x int64
-- 1 | 2
-- 3 | 3

--duckdb comma
same

--expect selected
-- id int64 | x int64
-- 1 | 1
-- 1 | 2
-- 3 | 3

--duckdb selected
same

--expect exploded
-- id int64 | x int64
-- 1 | 1
-- 1 | 2
-- 3 | 3

--duckdb exploded
SELECT id, unnest(xs) AS x FROM doc

--expect outer
-- id int64 | x int64
-- 1 | 1
-- 1 | 2
-- 2 | NULL
-- 3 | 3
-- 4 | NULL

--duckdb outer
SELECT id, unnest(CASE WHEN len(xs) > 0 THEN xs ELSE [NULL] END) AS x FROM doc

--expect counted
-- window_start timestamp | x int64 | c int64
-- 2026-01-01 00:00:00 | 1 | 1
-- 2026-01-01 00:00:00 | 2 | 1
-- 2026-01-01 00:00:00 | 3 | 1

--duckdb counted
SELECT time_bucket(INTERVAL '1 minute', ts) AS window_start, x, count(*) AS c FROM (SELECT ts, unnest(xs) AS x FROM doc) GROUP BY 1, 2
