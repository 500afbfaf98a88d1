-- WINDOW w AS: a window may build on one before it, and OVER may add a frame.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, item, SUM(price) OVER v AS s, COUNT(*) OVER (w ROWS 1 PRECEDING) AS n FROM bids WINDOW w AS (PARTITION BY item ORDER BY time), v AS (w ROWS 2 PRECEDING)

--plan
-- q@1: TIMELINE BY item AS key0 AGG SUM(price) OVER ROWS 2 PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), COUNT(*) OVER ROWS 1 PRECEDING 0 FOLLOWING AS COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) by (item) from bids select time, item, price, level 1
-- q = q@1 select time, item, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)" AS s, "COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)" AS n

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
-- time int64 | item string | s int64 | n int64
-- 1 | car | 100 | 1
-- 3 | car | 220 | 2
-- 3 | hat | 7 | 1
-- 9 | car | 340 | 2
-- 14 | hat | 16 | 2
-- 21 | pen | NULL | 1
-- 25 | car | 330 | 2
-- 40 | hat | 23 | 2
-- 58 | pen | 2 | 2
-- 61 | car | 410 | 2
-- 63 | car | 440 | 2
-- 64 | hat | 27 | 2
-- 90 | car | 500 | 2
-- 119 | pen | 5 | 2
-- 125 | hat | 23 | 2
-- 126 | car | 310 | 2

--duckdb q
SELECT time, item, SUM(price) OVER v AS s, COUNT(*) OVER (PARTITION BY item ORDER BY time ROWS 1 PRECEDING) AS n FROM bids WINDOW v AS (PARTITION BY item ORDER BY time ROWS 2 PRECEDING)
