-- LAG and LEAD within a window: the window closes, so there is a time after it.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, item, LAG(item) OVER (PARTITION BY time // 60 ORDER BY price, time) AS cheaper, LEAD(item) OVER (PARTITION BY time // 60 ORDER BY price, time) AS dearer FROM bids

--query counted
SELECT m, COUNT(nx) AS n FROM (SELECT time // 60 AS m, LEAD(time) OVER (PARTITION BY time // 60, item ORDER BY time) AS nx FROM bids) GROUP BY m

--plan
-- q@1: RANKED 60 BY  ORDER BY price, time AGG LAG 1(item) AS LAG(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST), LEAD 1(item) AS LEAD(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST) by () from bids select time, item, price, level 1
-- counted@1: RANKED 60 BY item AS key0 ORDER BY time AGG LEAD 1(time) AS LEAD(time) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST) by (item) from bids select time, item, level 1
-- counted@2: aggregate TUMBLE(1 AS m) by () from counted@1 select time // 60 AS m, "LEAD(time) OVER (PARTITION BY CAST(time / 60 AS BIGINT), item ORDER BY time NULLS LAST)" AS nx, sub-aggregated, level 2
-- q = q@1 select time, item, "LAG(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" AS cheaper, "LEAD(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" AS dearer
-- counted = counted@2

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

--expect q
-- time int64 | item string | cheaper string | dearer string
-- 1 | car | car | car
-- 3 | car | car | car
-- 3 | hat | pen | hat
-- 9 | car | car | pen
-- 14 | hat | hat | car
-- 21 | pen | car | NULL
-- 25 | car | hat | car
-- 40 | hat | hat | hat
-- 58 | pen | NULL | hat
-- 61 | car | car | NULL
-- 63 | car | hat | car
-- 64 | hat | pen | car
-- 90 | car | car | car
-- 119 | pen | NULL | hat
-- 125 | hat | NULL | car
-- 126 | car | hat | NULL

--expect counted
-- m int64 | n int64
-- 0 | 6
-- 1 | 2
-- 2 | 0

--duckdb q
same

--duckdb counted
same
