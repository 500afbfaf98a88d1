-- A sub-query in the place of a value: an aggregate over the same window.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query above
SELECT m, item, s FROM (SELECT time // 60 AS m, item, SUM(price) AS s FROM bids GROUP BY time // 60, item) g WHERE s > (SELECT AVG(price) FROM bids WHERE time // 60 = g.m)

--query beside
SELECT g.m, g.item, (SELECT COUNT(*) FROM pays p WHERE p.done // 60 = g.m AND p.item = g.item) AS paid FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item) g

--query rows
SELECT time, price FROM bids b WHERE price = (SELECT MAX(c.price) FROM bids c WHERE c.time // 60 = b.time // 60)

--plan
-- beside@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- beside@2: aggregate TUMBLE(60 AS sub_key0) by (item) from pays, sub-aggregated, level 1
-- above@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- above@2: aggregate TUMBLE(60 AS sub_key0) by () from bids, sub-aggregated, level 1
-- rows@1: aggregate TUMBLE(60 AS sub_key0) by () from bids, sub-aggregated, level 1
-- beside@3: LEFT JOIN ON m = sub_key0 AND item = sub_key1 AS value by (item) = (sub_key1) from beside@1 and beside@2 select sub_value, sub_key0, sub_key1, level 2
-- above@3: LEFT JOIN ON m = sub_key0 AS value by (m) = (sub_key0) from above@1 and above@2 select sub_value, sub_key0, level 2
-- rows@2: LEFT JOIN ON time // 60 = sub_key0 AS value by (time // 60) = (sub_key0) from bids and rows@1 select sub_value, sub_key0, level 2
-- beside = beside@3 select m, item, COALESCE(sub_value, 0) AS paid
-- above = above@3 where s > sub_value select m, item, s
-- rows = rows@2 where price = sub_value select time, price

--input bids
-- time | item | who | price
-- 1 | car | ann | 100
-- 3 | hat | bob | 7
-- 3 | car | bob | 120
-- 9 | car | cid | 120
-- 14 | hat | ann | 9
-- ~
-- 21 | pen | dan | NULL
-- 25 | car | ann | 90
-- 40 | hat | bob | 7
-- 58 | pen | ann | 2
-- ~
-- 61 | car | cid | 200
-- 63 | car | ann | 150
-- 64 | hat | eve | 11
-- 90 | car | eve | 150
-- ~
-- 119 | pen | dan | 3
-- 125 | hat | ann | 5
-- 126 | car | NULL | 10

--input pays
-- done | who | item
-- 2 | ann | car
-- 5 | NULL | hat
-- 10 | bob | hat
-- ~
-- 30 | ann | pen
-- 45 | dan | NULL
-- ~
-- 62 | cid | car
-- 95 | ann | car
-- ~
-- 130 | bob | car

--expect above
-- m int64 | item string | s int64
-- 0 | car | 430
-- 1 | car | 500
-- 2 | car | 10

--expect beside
-- m int64 | item string | paid int64
-- 0 | car | 1
-- 0 | hat | 2
-- 0 | pen | 1
-- 1 | car | 2
-- 1 | hat | 0
-- 1 | pen | 0
-- 2 | car | 1
-- 2 | hat | 0

--expect rows
-- time int64 | price int64
-- 3 | 120
-- 9 | 120
-- 61 | 200
-- 126 | 10

--duckdb above
same

--duckdb beside
same

--duckdb rows
same
