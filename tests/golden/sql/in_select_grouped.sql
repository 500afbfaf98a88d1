-- IN with a sub-query that has groups of its own.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time, item FROM bids WHERE time // 60 IN (SELECT done // 60 AS m FROM pays GROUP BY done // 60 HAVING COUNT(*) > 1)

--plan
-- q@1: aggregate TUMBLE(60 AS m) by () from pays, sub-aggregated, level 1
-- q@2: SEMI JOIN ON time // 60 = m AS among by (time // 60) = (m) from bids and q@1 where "COUNT(*)" > 1 select m, level 2
-- q = q@2 select time, item

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

--input pays
-- done | who | item
-- 2 | ann | car
-- 5 | NULL | hat
-- 10 | bob | hat
-- ~
-- 30 | ann | pen
-- 45 | dan | NULL
-- ~
-- 62 | cid | car
-- 95 | ann | car
-- ~
-- 130 | bob | car

--expect q
-- time int64 | item string
-- 1 | car
-- 3 | car
-- 3 | hat
-- 9 | car
-- 14 | hat
-- 21 | pen
-- 25 | car
-- 40 | hat
-- 58 | pen
-- 61 | car
-- 63 | car
-- 64 | hat
-- 90 | car
-- 119 | pen

--duckdb q
same
