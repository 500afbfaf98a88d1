-- The first and the last row of each key within a minute.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query first
SELECT time, item, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60, item ORDER BY time) = 1

--query last
SELECT time, item, price FROM bids QUALIFY ROW_NUMBER() OVER (PARTITION BY time // 60, item ORDER BY time DESC) = 1

--query on_price
SELECT DISTINCT ON (time // 60, item) time, item, price FROM bids ORDER BY time // 60, item, price DESC, time

--query on_time
SELECT DISTINCT ON (time // 60, who) time, who FROM bids

--plan
-- first@1: RANKED 60 BY item AS key0 ORDER BY time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST) LIMIT ROW_NUMBER <= 1 by (item) from bids select time, item, price, sub-aggregated, level 1
-- last@1: RANKED 60 BY item AS key0 ORDER BY time DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time DESC) LIMIT ROW_NUMBER <= 1 by (item) from bids select time, item, price, sub-aggregated, level 1
-- on_price@1: RANKED 60 BY item AS key0 ORDER BY price DESC, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY price DESC, time NULLS LAST) LIMIT ROW_NUMBER <= 1 by (item) from bids select time, item, price, sub-aggregated, level 1
-- on_time@1: RANKED 60 BY who AS key0 ORDER BY time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), who ORDER BY time NULLS LAST) LIMIT ROW_NUMBER <= 1 by (who) from bids select time, who, sub-aggregated, level 1
-- first = first@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST)" = 1 select time, item, price
-- last = last@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time DESC)" = 1 select time, item, price
-- on_price = on_price@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY price DESC, time NULLS LAST)" = 1 select time, item, price
-- on_time = on_time@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT), who ORDER BY time NULLS LAST)" = 1 select time, who

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
-- 1 | car | 100
-- 3 | hat | 7
-- 21 | pen | NULL
-- 61 | car | 200
-- 64 | hat | 11
-- 119 | pen | 3
-- 125 | hat | 5
-- 126 | car | 10

--expect last
-- time int64 | item string | price int64
-- 25 | car | 90
-- 40 | hat | 7
-- 58 | pen | 2
-- 64 | hat | 11
-- 90 | car | 150
-- 119 | pen | 3
-- 125 | hat | 5
-- 126 | car | 10

--expect on_price
-- time int64 | item string | price int64
-- 3 | car | 120
-- 14 | hat | 9
-- 58 | pen | 2
-- 61 | car | 200
-- 64 | hat | 11
-- 119 | pen | 3
-- 125 | hat | 5
-- 126 | car | 10

--expect on_time
-- time int64 | who string
-- 1 | ann
-- 3 | bob
-- 9 | cid
-- 21 | dan
-- 61 | cid
-- 63 | ann
-- 64 | eve
-- 119 | dan
-- 125 | ann
-- 126 | NULL

--duckdb first
same

--duckdb last
same

--duckdb on_price
same

--duckdb on_time
SELECT DISTINCT ON (time // 60, who) time, who FROM bids ORDER BY time
