-- Values of maps by their keys, and maps that are made.

--stream doc: time int64, id int64, m map(string, int64); ordered by time

--query read
SELECT id, m['a'] AS a, m['none'] AS n, map_extract_value(m, 'b') AS b, map_keys(m) AS k, map_values(m) AS v FROM doc

--query made
SELECT id, MAP(['x', 'y'], [id, id + 1])['y'] AS y, map_values(MAP(['x'], [id])) AS v FROM doc

--query spark dialect=spark
SELECT id, map('x', id, 'y', m['a']) AS m FROM doc

--query kept
SELECT id FROM doc WHERE m['a'] > 1

--plan
-- made = doc select id, MAP_EXTRACT_VALUE([{'key': 'x', 'value': id}, {'key': 'y', 'value': id + 1}], 'y') AS y, MAP_VALUES([{'key': 'x', 'value': id}]) AS v
-- read = doc select id, MAP_EXTRACT_VALUE(m, 'a') AS a, MAP_EXTRACT_VALUE(m, 'none') AS n, MAP_EXTRACT_VALUE(m, 'b') AS b, MAP_KEYS(m) AS k, MAP_VALUES(m) AS v
-- spark = doc select id, [{'key': 'x', 'value': id}, {'key': 'y', 'value': MAP_EXTRACT_VALUE(m, 'a')}] AS m
-- kept = doc where MAP_EXTRACT_VALUE(m, 'a') > 1 select id

--input doc
-- time | id | m
-- 1 | 1 | [{"key": "a", "value": 1}, {"key": "b", "value": 2}]
-- 2 | 2 | []
-- ~
-- 3 | 3 | NULL
-- 4 | 4 | [{"key": "b", "value": null}, {"key": "a", "value": 7}]

--expect read
-- id int64 | a int64 | n int64 | b int64 | k list(string) | v list(int64)
-- 1 | 1 | NULL | 2 | ["a", "b"] | [1, 2]
-- 2 | NULL | NULL | NULL | [] | []
-- 3 | NULL | NULL | NULL | NULL | NULL
-- 4 | 7 | NULL | NULL | ["b", "a"] | [null, 7]

--duckdb read
SELECT id, m['a'] AS a, m['none'] AS n, m['b'] AS b, map_keys(m) AS k, map_values(m) AS v FROM (SELECT id, map_from_entries(m) AS m FROM doc)

--expect made
-- id int64 | y int64 | v list(int64)
-- 1 | 2 | [1]
-- 2 | 3 | [2]
-- 3 | 4 | [3]
-- 4 | 5 | [4]

--duckdb made
SELECT id, MAP(['x', 'y'], [id, id + 1])['y'] AS y, map_values(MAP(['x'], [id])) AS v FROM doc

--expect spark
-- id int64 | m map(string, int64)
-- 1 | [{"key": "x", "value": 1}, {"key": "y", "value": 1}]
-- 2 | [{"key": "x", "value": 2}, {"key": "y", "value": null}]
-- 3 | [{"key": "x", "value": 3}, {"key": "y", "value": null}]
-- 4 | [{"key": "x", "value": 4}, {"key": "y", "value": 7}]

--duckdb spark
SELECT id, map_entries(MAP(['x', 'y'], [id, map_from_entries(m)['a']])) AS m FROM doc

--expect kept
-- id int64
-- 4

--duckdb kept
SELECT id FROM doc WHERE map_from_entries(m)['a'] > 1
