-- The two highest bids of each minute: only these are kept while a minute is open.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query top
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC, who) AS rn FROM bids) WHERE rn <= 2

--query by_item
SELECT time // 60 AS m, item, who, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60, item ORDER BY price DESC, time) = 1

--plan
-- by_item@1: RANKED 60 BY item AS key0 ORDER BY price DESC, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY price DESC, time NULLS LAST) LIMIT ROW_NUMBER <= 1 by (item) from bids, sub-aggregated, level 1
-- top@1: RANKED 60 BY  ORDER BY price DESC, who AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, who NULLS LAST) LIMIT ROW_NUMBER <= 2 by () from bids, sub-aggregated, level 1
-- by_item = by_item@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY price DESC, time NULLS LAST)" = 1 select time // 60 AS m, item, who, price
-- top = top@1 select time, item, who, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, who NULLS LAST)" AS rn where rn <= 2

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
-- time int64 | item string | who string | price int64 | rn int64
-- 3 | car | bob | 120 | 1
-- 9 | car | cid | 120 | 2
-- 61 | car | cid | 200 | 1
-- 63 | car | ann | 150 | 2
-- 125 | hat | ann | 5 | 2
-- 126 | car | NULL | 10 | 1

--expect by_item
-- m int64 | item string | who string | price int64
-- 0 | car | bob | 120
-- 0 | hat | ann | 9
-- 0 | pen | ann | 2
-- 1 | car | cid | 200
-- 1 | hat | eve | 11
-- 1 | pen | dan | 3
-- 2 | car | NULL | 10
-- 2 | hat | ann | 5

--duckdb top
same

--duckdb by_item
same
