-- RANGE with a length of time: all rows of the last so many seconds, those of the same time too.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query sums
SELECT time, item, SUM(price) OVER (PARTITION BY item ORDER BY time RANGE 30 PRECEDING) AS s, COUNT(*) OVER (PARTITION BY item ORDER BY time RANGE BETWEEN 60 PRECEDING AND CURRENT ROW) AS n FROM bids

--query all
SELECT time, COUNT(*) OVER (ORDER BY time RANGE BETWEEN 20 PRECEDING AND CURRENT ROW) AS n FROM bids

--plan
-- all@1: TIMELINE BY  AGG COUNT(*) OVER RANGE 20 PRECEDING 0 FOLLOWING AS COUNT(*) OVER (ORDER BY time NULLS LAST RANGE BETWEEN 20 PRECEDING AND CURRENT ROW) by () from bids select time, level 1
-- sums@1: TIMELINE BY item AS key0 AGG SUM(price) OVER RANGE 30 PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST RANGE BETWEEN 30 PRECEDING AND CURRENT ROW), COUNT(*) OVER RANGE 60 PRECEDING 0 FOLLOWING AS COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST RANGE BETWEEN 60 PRECEDING AND CURRENT ROW) by (item) from bids select time, item, price, level 1
-- all = all@1 select time, "COUNT(*) OVER (ORDER BY time NULLS LAST RANGE BETWEEN 20 PRECEDING AND CURRENT ROW)" AS n
-- sums = sums@1 select time, item, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST RANGE BETWEEN 30 PRECEDING AND CURRENT ROW)" AS s, "COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST RANGE BETWEEN 60 PRECEDING AND CURRENT ROW)" AS n

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

--expect sums
-- time int64 | item string | s int64 | n int64
-- 1 | car | 100 | 1
-- 3 | car | 220 | 2
-- 3 | hat | 7 | 1
-- 9 | car | 340 | 3
-- 14 | hat | 16 | 2
-- 21 | pen | NULL | 1
-- 25 | car | 430 | 4
-- 40 | hat | 16 | 3
-- 58 | pen | 2 | 2
-- 61 | car | 200 | 5
-- 63 | car | 350 | 5
-- 64 | hat | 18 | 3
-- 90 | car | 500 | 3
-- 119 | pen | 3 | 1
-- 125 | hat | 5 | 1
-- 126 | car | 10 | 2

--expect all
-- time int64 | n int64
-- 1 | 1
-- 3 | 3
-- 3 | 3
-- 9 | 4
-- 14 | 5
-- 21 | 6
-- 25 | 4
-- 40 | 3
-- 58 | 2
-- 61 | 2
-- 63 | 3
-- 64 | 4
-- 90 | 1
-- 119 | 1
-- 125 | 2
-- 126 | 3

--duckdb sums
same

--duckdb all
same
