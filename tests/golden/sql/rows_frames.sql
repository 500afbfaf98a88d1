-- ROWS of every form: before, after, both, and without the row itself.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query past
SELECT time, item, AVG(price) OVER (PARTITION BY item ORDER BY time ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS a, COUNT(*) OVER (PARTITION BY item ORDER BY time ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS n FROM bids

--query around
SELECT time, item, SUM(price) OVER (PARTITION BY item ORDER BY time ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, MAX(price) OVER (PARTITION BY item ORDER BY time ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS m FROM bids

--query mixed
SELECT time, item, SUM(price) OVER (PARTITION BY item ORDER BY time ROWS 1 PRECEDING) AS two, SUM(price) OVER (PARTITION BY item ORDER BY time ROWS 2 PRECEDING) AS three FROM bids

--plan
-- around@1: TIMELINE BY item AS key0 AGG SUM(price) OVER ROWS 1 PRECEDING 1 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), MAX(price) OVER ROWS -1 PRECEDING 2 FOLLOWING AS MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) by (item) from bids select time, item, price, level 1
-- mixed@1: TIMELINE BY item AS key0 AGG SUM(price) OVER ROWS 1 PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), SUM(price) OVER ROWS 2 PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) by (item) from bids select time, item, price, level 1
-- past@1: TIMELINE BY item AS key0 AGG AVG(price) OVER ROWS 3 PRECEDING -1 FOLLOWING AS AVG(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING), COUNT(*) OVER ROWS 2 PRECEDING -1 FOLLOWING AS COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) by (item) from bids select time, item, price, level 1
-- around = around@1 select time, item, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)" AS s, "MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)" AS m
-- mixed = mixed@1 select time, item, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)" AS two, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)" AS three
-- past = past@1 select time, item, "AVG(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)" AS a, "COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)" AS n

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

--expect past
-- time int64 | item string | a float64 | n int64
-- 1 | car | NULL | 0
-- 3 | car | 100.0 | 1
-- 3 | hat | NULL | 0
-- 9 | car | 110.0 | 2
-- 14 | hat | 7.0 | 1
-- 21 | pen | NULL | 0
-- 25 | car | 113.33333333333333 | 2
-- 40 | hat | 8.0 | 2
-- 58 | pen | NULL | 1
-- 61 | car | 110.0 | 2
-- 63 | car | 136.66666666666666 | 2
-- 64 | hat | 7.666666666666667 | 2
-- 90 | car | 146.66666666666666 | 2
-- 119 | pen | 2.0 | 2
-- 125 | hat | 9.0 | 2
-- 126 | car | 166.66666666666666 | 2

--expect around
-- time int64 | item string | s int64 | m int64
-- 1 | car | 220 | 120
-- 3 | car | 340 | 120
-- 3 | hat | 16 | 9
-- 9 | car | 330 | 200
-- 14 | hat | 23 | 11
-- 21 | pen | 2 | 3
-- 25 | car | 410 | 200
-- 40 | hat | 27 | 11
-- 58 | pen | 5 | 3
-- 61 | car | 440 | 150
-- 63 | car | 500 | 150
-- 64 | hat | 23 | 5
-- 90 | car | 310 | 10
-- 119 | pen | 5 | NULL
-- 125 | hat | 16 | NULL
-- 126 | car | 160 | NULL

--expect mixed
-- time int64 | item string | two int64 | three int64
-- 1 | car | 100 | 100
-- 3 | car | 220 | 220
-- 3 | hat | 7 | 7
-- 9 | car | 240 | 340
-- 14 | hat | 16 | 16
-- 21 | pen | NULL | NULL
-- 25 | car | 210 | 330
-- 40 | hat | 16 | 23
-- 58 | pen | 2 | 2
-- 61 | car | 290 | 410
-- 63 | car | 350 | 440
-- 64 | hat | 18 | 27
-- 90 | car | 300 | 500
-- 119 | pen | 5 | 5
-- 125 | hat | 16 | 23
-- 126 | car | 160 | 310

--duckdb past
same

--duckdb around
same

--duckdb mixed
same
