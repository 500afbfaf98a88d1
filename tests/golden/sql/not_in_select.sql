-- NOT IN: a NULL among the values, or instead of the one, keeps a row out, as SQL has it.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query told
SELECT time, who FROM bids b WHERE who IS NOT NULL AND who NOT IN (SELECT who FROM pays p WHERE who IS NOT NULL AND p.done BETWEEN b.time - 30 AND b.time + 30)

--query nulls
SELECT time, item, who FROM bids b WHERE who NOT IN (SELECT p.who FROM pays p WHERE p.item = b.item AND p.done BETWEEN b.time - 60 AND b.time + 60)

--plan
-- nulls@1: ANTI JOIN ON item = item WHERE (((who = who_p) | who IS NULL) | who_p IS NULL) & ((done >= (time - 60)) & (done <= (time + 60))) AS p by (item) = (item) from bids and pays, level 1
-- told@1: ANTI JOIN ON who = who WHERE (done >= (time - 30)) & (done <= (time + 30)) AS p by (who) = (who) from bids where who IS NOT NULL and pays where who IS NOT NULL, level 1
-- nulls = nulls@1 select time, item, who
-- told = told@1 select time, who

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

--expect told
-- time int64 | who string
-- 9 | cid
-- 63 | ann
-- 64 | eve
-- 90 | eve
-- 119 | dan

--expect nulls
-- time int64 | item string | who string
-- 3 | car | bob
-- 21 | pen | dan
-- 90 | car | eve
-- 119 | pen | dan
-- 125 | hat | ann

--duckdb told
SELECT time, who FROM bids b WHERE who IS NOT NULL AND who NOT IN (SELECT p.who FROM pays p WHERE p.who IS NOT NULL AND p.done BETWEEN b.time - 30 AND b.time + 30)

--duckdb nulls
same
