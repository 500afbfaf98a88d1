-- EXISTS and NOT EXISTS as semi- and anti-joins.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query yes
SELECT time, item FROM bids b WHERE EXISTS (SELECT 1 FROM pays p WHERE p.item = b.item AND p.done > b.time AND p.done <= b.time + 10)

--query no
SELECT time, item FROM bids b WHERE NOT EXISTS (SELECT * FROM pays WHERE pays.item = b.item AND pays.done BETWEEN b.time - 20 AND b.time + 20) AND price > 5

--query same_stream
SELECT time, item, price FROM bids WHERE NOT EXISTS (SELECT 1 FROM bids c WHERE c.item = bids.item AND c.time < bids.time AND c.time >= bids.time - 15)

--query both
SELECT time FROM bids b WHERE EXISTS (SELECT 1 FROM pays p WHERE p.who = b.who AND p.done BETWEEN b.time - 40 AND b.time) AND NOT EXISTS (SELECT 1 FROM pays q WHERE q.item = b.item AND q.done BETWEEN b.time AND b.time + 40)

--plan
-- same_stream@1: ANTI JOIN ON item = item WHERE (time_c < time) & (time_c >= (time - 15)) AS c by (item) = (item) from bids and bids, level 1
-- yes@1: SEMI JOIN ON item = item WHERE (done > time) & (done <= (time + 10)) AS p by (item) = (item) from bids and pays, level 1
-- both@1: SEMI JOIN ON who = who WHERE (done >= (time - 40)) & (done <= time) AS p by (who) = (who) from bids and pays, level 1
-- no@1: ANTI JOIN ON item = item WHERE (done >= (time - 20)) & (done <= (time + 20)) AS pays by (item) = (item) from bids where price > 5 and pays, level 1
-- both@2: ANTI JOIN ON item = item WHERE (done >= time) & (done <= (time + 40)) AS q by (item) = (item) from both@1 and pays, level 2
-- same_stream = same_stream@1 select time, item, price
-- yes = yes@1 select time, item
-- both = both@2 select time
-- no = no@1 select time, item

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

--expect yes
-- time int64 | item string
-- 1 | car
-- 3 | hat
-- 21 | pen
-- 61 | car
-- 90 | car
-- 126 | car

--expect no
-- time int64 | item string
-- 25 | car
-- 40 | hat
-- 64 | hat

--expect same_stream
-- time int64 | item string | price int64
-- 1 | car | 100
-- 3 | hat | 7
-- 21 | pen | NULL
-- 25 | car | 90
-- 40 | hat | 7
-- 58 | pen | 2
-- 61 | car | 200
-- 64 | hat | 11
-- 90 | car | 150
-- 119 | pen | 3
-- 125 | hat | 5
-- 126 | car | 10

--expect both
-- time int64
-- 14
-- 40
-- 58
-- 125

--duckdb yes
same

--duckdb no
same

--duckdb same_stream
same

--duckdb both
same
