-- The rows before and after in the order of time; a row waits for the one after it, or the end.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query gap
SELECT time, item, time - LAG(time) OVER (PARTITION BY item ORDER BY time) AS gap, LAG(price, 2, 0) OVER (PARTITION BY item ORDER BY time) AS two FROM bids

--query next
SELECT time, item, LEAD(time) OVER (PARTITION BY item ORDER BY time) AS next, LAG(who) OVER (PARTITION BY item ORDER BY time) AS before FROM bids

--query defaults
SELECT time, item, LEAD(price, 2, -1) OVER w AS l, LAG(price, 1, price) OVER w AS own FROM bids WINDOW w AS (PARTITION BY item ORDER BY time)

--plan
-- defaults@1: TIMELINE BY item AS key0 AGG LEAD 2(price, -1) AS LEAD(price, 2, -1) OVER (PARTITION BY item ORDER BY time NULLS LAST), LAG 1(price, price) AS LAG(price, 1, price) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, price, level 1
-- gap@1: TIMELINE BY item AS key0 AGG LAG 1(time) AS LAG(time) OVER (PARTITION BY item ORDER BY time NULLS LAST), LAG 2(price, 0) AS LAG(price, 2, 0) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, price, level 1
-- next@1: TIMELINE BY item AS key0 AGG LEAD 1(time) AS LEAD(time) OVER (PARTITION BY item ORDER BY time NULLS LAST), LAG 1(who) AS LAG(who) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, who, level 1
-- defaults = defaults@1 select time, item, "LEAD(price, 2, -1) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS l, "LAG(price, 1, price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS own
-- gap = gap@1 select time, item, time - "LAG(time) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS gap, "LAG(price, 2, 0) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS two
-- next = next@1 select time, item, "LEAD(time) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS next, "LAG(who) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS before

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

--expect gap
-- time int64 | item string | gap int64 | two int64
-- 1 | car | NULL | 0
-- 3 | car | 2 | 0
-- 3 | hat | NULL | 0
-- 9 | car | 6 | 100
-- 14 | hat | 11 | 0
-- 21 | pen | NULL | 0
-- 25 | car | 16 | 120
-- 40 | hat | 26 | 7
-- 58 | pen | 37 | 0
-- 61 | car | 36 | 120
-- 63 | car | 2 | 90
-- 64 | hat | 24 | 9
-- 90 | car | 27 | 200
-- 119 | pen | 61 | NULL
-- 125 | hat | 61 | 7
-- 126 | car | 36 | 150

--expect next
-- time int64 | item string | next int64 | before string
-- 1 | car | 3 | NULL
-- 3 | car | 9 | ann
-- 3 | hat | 14 | NULL
-- 9 | car | 25 | bob
-- 14 | hat | 40 | bob
-- 21 | pen | 58 | NULL
-- 25 | car | 61 | cid
-- 40 | hat | 64 | ann
-- 58 | pen | 119 | dan
-- 61 | car | 63 | ann
-- 63 | car | 90 | cid
-- 64 | hat | 125 | bob
-- 90 | car | 126 | ann
-- 119 | pen | NULL | ann
-- 125 | hat | NULL | eve
-- 126 | car | NULL | eve

--expect defaults
-- time int64 | item string | l int64 | own int64
-- 1 | car | 120 | 100
-- 3 | car | 90 | 100
-- 3 | hat | 7 | 7
-- 9 | car | 200 | 120
-- 14 | hat | 11 | 7
-- 21 | pen | 3 | NULL
-- 25 | car | 150 | 120
-- 40 | hat | 5 | 9
-- 58 | pen | -1 | NULL
-- 61 | car | 150 | 90
-- 63 | car | 10 | 200
-- 64 | hat | -1 | 7
-- 90 | car | -1 | 150
-- 119 | pen | -1 | 2
-- 125 | hat | -1 | 11
-- 126 | car | -1 | 150

--duckdb gap
same

--duckdb next
same

--duckdb defaults
same
