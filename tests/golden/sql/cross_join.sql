-- CROSS JOIN and ON TRUE, with the bound of time in WHERE.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query cross
SELECT b.time, p.done FROM bids b CROSS JOIN pays p WHERE p.done BETWEEN b.time AND b.time + 4

--query on_true
SELECT b.time, p.done, p.who FROM bids b JOIN pays p ON TRUE WHERE p.done BETWEEN b.time - 3 AND b.time AND p.who = b.who

--plan
-- cross@1: INNER JOIN ON TRUE WHERE (done >= time) & (done <= (time + 4)) AS p in a grid from bids and pays, level 1
-- on_true@1: INNER JOIN ON who = who WHERE (done >= (time - 3)) & (done <= time) AS p by (who) = (who) from bids and pays, level 1
-- cross = cross@1 select time, done
-- on_true = on_true@1 select time, done, who_p AS who

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

--expect cross
-- time int64 | done int64
-- 1 | 2
-- 1 | 5
-- 3 | 5
-- 3 | 5
-- 9 | 10
-- 58 | 62
-- 61 | 62
-- 126 | 130

--expect on_true
-- time int64 | done int64 | who string

--duckdb cross
same

--duckdb on_true
same
