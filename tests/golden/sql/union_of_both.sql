-- UNION gives a row once if two inputs have it at the same time.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query u
SELECT time, item FROM bids WHERE price > 8 UNION SELECT time, item FROM bids WHERE who = 'ann'

--plan
-- u@1: aggregate TUMBLE(1 AS time) by (item) from bids where price > 8 select time, item and bids where who = 'ann' select time, item, sub-aggregated, level 1
-- u = u@1

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

--expect u
-- time int64 | item string
-- 1 | car
-- 3 | car
-- 9 | car
-- 14 | hat
-- 25 | car
-- 58 | pen
-- 61 | car
-- 63 | car
-- 64 | hat
-- 90 | car
-- 125 | hat
-- 126 | car

--duckdb u
same
