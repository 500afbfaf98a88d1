-- ORDER BY … LIMIT holds for each window; LIMIT n BY says which.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query top
SELECT time // 60 AS m, item, SUM(price) AS s FROM bids GROUP BY time // 60, item ORDER BY s DESC LIMIT 1

--query skip
SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item ORDER BY n DESC, item LIMIT 1 OFFSET 1

--query by
SELECT time, item, price FROM bids ORDER BY price DESC, time LIMIT 1 BY time // 60, item

--plan
-- by@1: RANKED 60 BY item AS key0 ORDER BY price DESC, time AGG ROW_NUMBER() AS place in its window LIMIT ROW_NUMBER <= 1 by (item) from bids select time, item, price, sub-aggregated, level 1
-- top@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- skip@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- top@2: RANKED 1 BY  ORDER BY s DESC AGG ROW_NUMBER() AS place in its window LIMIT ROW_NUMBER <= 1 by () from top@1, sub-aggregated, level 2
-- skip@2: RANKED 1 BY  ORDER BY n DESC, item AGG ROW_NUMBER() AS place in its window LIMIT ROW_NUMBER <= 2 by () from skip@1, sub-aggregated, level 2
-- by = by@1 where "place in its window" <= 1 select time, item, price
-- top = top@2 where "place in its window" <= 1 select m, item, s
-- skip = skip@2 where "place in its window" <= 2 where "place in its window" > 1 select m, item, n

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

--expect top
-- m int64 | item string | s int64
-- 0 | car | 430
-- 1 | car | 500
-- 2 | car | 10

--expect skip
-- m int64 | item string | n int64
-- 0 | hat | 3
-- 1 | hat | 1
-- 2 | hat | 1

--expect by
-- time int64 | item string | price int64
-- 3 | car | 120
-- 14 | hat | 9
-- 58 | pen | 2
-- 61 | car | 200
-- 64 | hat | 11
-- 119 | pen | 3
-- 125 | hat | 5
-- 126 | car | 10

--duckdb top
SELECT * FROM (SELECT time // 60 AS m, item, SUM(price) AS s FROM bids GROUP BY time // 60, item) QUALIFY ROW_NUMBER() OVER (PARTITION BY m ORDER BY s DESC) = 1

--duckdb skip
SELECT * FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item) QUALIFY ROW_NUMBER() OVER (PARTITION BY m ORDER BY n DESC, item) = 2

--duckdb by
SELECT time, item, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60, item ORDER BY price DESC, time) = 1
