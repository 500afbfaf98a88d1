-- Aggregates over all rows of a window, beside each row.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query share
SELECT time, item, price, SUM(price) OVER (PARTITION BY time // 60) AS total, MAX(price) OVER (PARTITION BY time // 60, item) AS best FROM bids

--query of_groups
SELECT m, item, n, SUM(n) OVER (PARTITION BY m) AS total FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item)

--query so_far
SELECT time, item, price, SUM(price) OVER (PARTITION BY time // 60, item ORDER BY time) AS s, COUNT(*) OVER (PARTITION BY time // 60 ORDER BY time RANGE 20 PRECEDING) AS n FROM bids

--plan
-- of_groups@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- share@1: RANKED 60 BY  ORDER BY  AGG SUM(price) OVER ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING AS SUM(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT)) by () from bids select time, item, price, level 1
-- so_far@1: RANKED 60 BY item AS key0 ORDER BY time AGG SUM(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST) by (item) from bids select time, item, price, level 1
-- of_groups@2: RANKED 1 BY  ORDER BY  AGG SUM(n) OVER ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING AS SUM(n) OVER (PARTITION BY m) by () from of_groups@1, level 2
-- share@2: RANKED 60 BY item AS key0 ORDER BY  AGG MAX(price) OVER ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING AS MAX(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item) by (item) from share@1, level 2
-- so_far@2: RANKED 60 BY  ORDER BY time AGG COUNT(*) OVER RANGE 20 PRECEDING 0 FOLLOWING AS COUNT(*) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST RANGE BETWEEN 20 PRECEDING AND CURRENT ROW) by () from so_far@1, level 2
-- of_groups = of_groups@2 select m, item, n, "SUM(n) OVER (PARTITION BY m)" AS total
-- share = share@2 select time, item, price, "SUM(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT))" AS total, "MAX(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item)" AS best
-- so_far = so_far@2 select time, item, price, "SUM(price) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST)" AS s, "COUNT(*) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST RANGE BETWEEN 20 PRECEDING AND CURRENT ROW)" AS n

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

--expect share
-- time int64 | item string | price int64 | total int64 | best int64
-- 1 | car | 100 | 455 | 120
-- 3 | car | 120 | 455 | 120
-- 3 | hat | 7 | 455 | 9
-- 9 | car | 120 | 455 | 120
-- 14 | hat | 9 | 455 | 9
-- 21 | pen | NULL | 455 | 2
-- 25 | car | 90 | 455 | 120
-- 40 | hat | 7 | 455 | 9
-- 58 | pen | 2 | 455 | 2
-- 61 | car | 200 | 514 | 200
-- 63 | car | 150 | 514 | 200
-- 64 | hat | 11 | 514 | 11
-- 90 | car | 150 | 514 | 200
-- 119 | pen | 3 | 514 | 3
-- 125 | hat | 5 | 15 | 5
-- 126 | car | 10 | 15 | 10

--expect of_groups
-- m int64 | item string | n int64 | total int64
-- 0 | car | 4 | 9
-- 0 | hat | 3 | 9
-- 0 | pen | 2 | 9
-- 1 | car | 3 | 5
-- 1 | hat | 1 | 5
-- 1 | pen | 1 | 5
-- 2 | car | 1 | 2
-- 2 | hat | 1 | 2

--expect so_far
-- time int64 | item string | price int64 | s int64 | n int64
-- 1 | car | 100 | 100 | 1
-- 3 | car | 120 | 220 | 3
-- 3 | hat | 7 | 7 | 3
-- 9 | car | 120 | 340 | 4
-- 14 | hat | 9 | 16 | 5
-- 21 | pen | NULL | NULL | 6
-- 25 | car | 90 | 430 | 4
-- 40 | hat | 7 | 23 | 3
-- 58 | pen | 2 | 2 | 2
-- 61 | car | 200 | 200 | 1
-- 63 | car | 150 | 350 | 2
-- 64 | hat | 11 | 11 | 3
-- 90 | car | 150 | 500 | 1
-- 119 | pen | 3 | 3 | 1
-- 125 | hat | 5 | 5 | 1
-- 126 | car | 10 | 10 | 2

--duckdb share
same

--duckdb of_groups
same

--duckdb so_far
same
