-- The first row of each key in the order of time, for ever: one row of each key is kept.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query first
SELECT time, item, who FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY item ORDER BY time) = 1

--query again
SELECT time, item FROM (SELECT time, item, time - LAG(time) OVER (PARTITION BY item ORDER BY time) AS gap FROM bids) WHERE gap IS NULL OR gap > 20

--plan
-- first@1: TIMELINE BY item AS key0 AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, who, level 1
-- again@1: TIMELINE BY item AS key0 AGG LAG 1(time) AS LAG(time) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, level 1
-- first = first@1 where "ROW_NUMBER() OVER (PARTITION BY item ORDER BY time NULLS LAST)" = 1 select time, item, who
-- again = again@1 select time, item, time - "LAG(time) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS gap where gap IS NULL | (gap > 20) select time, item

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
-- time int64 | item string | who string
-- 1 | car | ann
-- 3 | hat | bob
-- 21 | pen | dan

--expect again
-- time int64 | item string
-- 1 | car
-- 3 | hat
-- 21 | pen
-- 40 | hat
-- 58 | pen
-- 61 | car
-- 64 | hat
-- 90 | car
-- 119 | pen
-- 125 | hat
-- 126 | car

--duckdb first
same

--duckdb again
same
