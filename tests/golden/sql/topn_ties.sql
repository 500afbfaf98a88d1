-- Rows in the same place are told apart by what the SELECT reads of them, in the order of the input.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query first
SELECT time, item, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC) <= 2

--query by_text
SELECT item, time // 60 AS m FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY length(item)) = 2

--plan
-- by_text@1: RANKED 60 BY  ORDER BY LENGTH(item) AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY LENGTH(item) NULLS LAST) LIMIT ROW_NUMBER <= 2 by () from bids select time, item, sub-aggregated, level 1
-- first@1: RANKED 60 BY  ORDER BY price DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC) LIMIT ROW_NUMBER <= 2 by () from bids select time, item, price, sub-aggregated, level 1
-- by_text = by_text@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY LENGTH(item) NULLS LAST)" = 2 select item, time // 60 AS m
-- first = first@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" <= 2 select time, item, price

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

--expect first
-- time int64 | item string | price int64
-- 3 | car | 120
-- 9 | car | 120
-- 61 | car | 200
-- 63 | car | 150
-- 125 | hat | 5
-- 126 | car | 10

--expect by_text
-- item string | m int64
-- car | 0
-- car | 1
-- car | 2

--duckdb first
SELECT time, item, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC, time, item) <= 2

--duckdb by_text
SELECT item, time // 60 AS m FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY length(item), time, item) = 2
