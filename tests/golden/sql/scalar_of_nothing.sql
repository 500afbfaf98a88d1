-- A sub-query in the place of a value that no row meets: counts are 0, other aggregates NULL, and so on with them.

--stream bids: time int64, item string, price int64; ordered by time
--stream pays: done int64, item string, sum int64; ordered by done

--query q
SELECT time, (SELECT COALESCE(SUM(sum), 0) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS a, (SELECT COUNT(*) + 1 FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS b, (SELECT SUM(p.sum) + COUNT(*) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS c FROM bids b

--query filtered
SELECT time, (SELECT COUNT(*) FILTER (WHERE p.sum > 5) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS a, (SELECT COUNT_IF(p.sum > 5) * 2 - COUNT(DISTINCT p.sum) AS n FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS b, 2 * (SELECT MAX(p.sum) - MIN(p.sum) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS c FROM bids b

--query around
SELECT time, (SELECT COUNT(*) + b.price FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS a FROM bids b WHERE (SELECT CASE WHEN MAX(p.sum) IS NULL THEN 'none' ELSE 'some' END FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) = 'none'

--query fraction dialect=duckdb
SELECT time, (SELECT SUM(p.sum) / COUNT(*) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS a FROM bids b

--plan
-- fraction@1: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- around@1: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- around@3: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- filtered@1: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- filtered@3: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- filtered@5: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- q@1: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- fraction@2: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value by (item) = (sub_key1) from bids and fraction@1 select sub_value, sub_value1, sub_key0, sub_key1, level 2
-- around@2: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value by (item) = (sub_key1) from bids and around@1 select sub_value, sub_key0, sub_key1, level 2
-- filtered@2: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value by (item) = (sub_key1) from bids and filtered@1 select sub_value, sub_key0, sub_key1, level 2
-- q@2: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value by (item) = (sub_key1) from bids and q@1 select sub_value, sub_key0, sub_key1, level 2
-- around@4: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value_2 by (item) = (sub_key1) from around@2 and around@3 select sub_value, sub_key0, sub_key1, level 3
-- filtered@4: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value_2 by (item) = (sub_key1) from filtered@2 and filtered@3 select sub_value, sub_value1, sub_key0, sub_key1, level 3
-- q@3: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value_2 by (item) = (sub_key1) from q@2 and around@3 select sub_value, sub_key0, sub_key1, level 3
-- filtered@6: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value_3 by (item) = (sub_key1) from filtered@4 and filtered@5 select sub_value, sub_value1, sub_key0, sub_key1, level 4
-- q@4: LEFT JOIN ON time // 60 = sub_key0 AND item = sub_key1 AS value_3 by (item) = (sub_key1) from q@3 and fraction@1 select sub_value, sub_value1, sub_key0, sub_key1, level 4
-- fraction = fraction@2 select time, sub_value / COALESCE(sub_value1, 0) AS a
-- around = around@4 where CASE WHEN sub_value IS NULL THEN 'none' ELSE 'some' END = 'none' select time, COALESCE(sub_value_value_2, 0) + price AS a
-- filtered = filtered@6 select time, COALESCE(sub_value, 0) AS a, (COALESCE(sub_value_value_2, 0) * 2) - COALESCE(sub_value1, 0) AS b, 2 * (sub_value_value_3 - sub_value1_value_3) AS c
-- q = q@4 select time, COALESCE(sub_value, 0) AS a, COALESCE(sub_value_value_2, 0) + 1 AS b, sub_value_value_3 + COALESCE(sub_value1, 0) AS c

--input bids
-- time | item | price
-- 1 | car | 100
-- 3 | hat | 7
-- ~
-- 61 | car | 200
-- 64 | pen | NULL
-- ~
-- 130 | NULL | 3

--input pays
-- done | item | sum
-- 2 | car | 4
-- 5 | car | 9
-- ~
-- 62 | car | NULL
-- ~
-- 130 | bob | 1

--expect q
-- time int64 | a int64 | b int64 | c int64
-- 1 | 13 | 3 | 15
-- 3 | 0 | 1 | NULL
-- 61 | 0 | 2 | NULL
-- 64 | 0 | 1 | NULL
-- 130 | 0 | 1 | NULL

--expect filtered
-- time int64 | a int64 | b int64 | c int64
-- 1 | 1 | 0 | 10
-- 3 | 0 | 0 | NULL
-- 61 | 0 | 0 | NULL
-- 64 | 0 | 0 | NULL
-- 130 | 0 | 0 | NULL

--expect around
-- time int64 | a int64
-- 3 | 7
-- 61 | 201
-- 64 | NULL
-- 130 | 3

--expect fraction
-- time int64 | a float64
-- 1 | 6.5
-- 3 | NULL
-- 61 | NULL
-- 64 | NULL
-- 130 | NULL

--duckdb q
same

--duckdb filtered
SELECT time, (SELECT COUNT(*) FILTER (WHERE p.sum > 5) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS a, (SELECT COUNT(*) FILTER (WHERE p.sum > 5) * 2 - COUNT(DISTINCT p.sum) AS n FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS b, 2 * (SELECT MAX(p.sum) - MIN(p.sum) FROM pays p WHERE p.done // 60 = b.time // 60 AND p.item = b.item) AS c FROM bids b

--duckdb around
same

--duckdb fraction
same
