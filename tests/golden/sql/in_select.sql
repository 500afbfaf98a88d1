-- IN (SELECT …) with a bound of time: rows that meet one of the other input.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query paid
SELECT time, item, who FROM bids b WHERE who IN (SELECT p.who FROM pays p WHERE p.done BETWEEN b.time AND b.time + 30)

--query unqualified
SELECT time, item FROM bids WHERE item IN (SELECT item FROM pays WHERE done >= time AND done <= time + 60 AND who <> 'dan')

--query same_minute
SELECT m, item, n FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item) g WHERE g.m IN (SELECT done // 60 AS k FROM pays p WHERE p.item = g.item)

--plan
-- paid@1: SEMI JOIN ON who = who WHERE (done >= time) & (done <= (time + 30)) AS p by (who) = (who) from bids and pays, level 1
-- same_minute@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- unqualified@1: SEMI JOIN ON item = item WHERE (done >= time) & (done <= (time + 60)) AS pays by (item) = (item) from bids and pays where who <> 'dan', level 1
-- same_minute@2: SEMI JOIN ON m = done // 60 AND item = item AS p by (item) = (item) from same_minute@1 and pays, level 2
-- paid = paid@1 select time, item, who
-- same_minute = same_minute@2
-- unqualified = unqualified@1 select time, item

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

--expect paid
-- time int64 | item string | who string
-- 1 | car | ann
-- 3 | car | bob
-- 3 | hat | bob
-- 14 | hat | ann
-- 21 | pen | dan
-- 25 | car | ann
-- 61 | car | cid

--expect unqualified
-- time int64 | item string
-- 1 | car
-- 3 | car
-- 3 | hat
-- 9 | car
-- 21 | pen
-- 25 | car
-- 61 | car
-- 63 | car
-- 90 | car
-- 126 | car

--expect same_minute
-- m int64 | item string | n int64
-- 0 | car | 4
-- 0 | hat | 3
-- 0 | pen | 2
-- 1 | car | 3
-- 2 | car | 1

--duckdb paid
same

--duckdb unqualified
SELECT time, item FROM bids WHERE item IN (SELECT p.item FROM pays p WHERE done >= time AND done <= time + 60 AND p.who <> 'dan')

--duckdb same_minute
same
