-- UNBOUNDED PRECEDING: numbers that go on for ever, from row to row.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query so_far
SELECT time, item, SUM(price) OVER w AS s, COUNT(*) OVER w AS n, COUNT(price) OVER w AS p, MIN(price) OVER w AS low, MAX(price) OVER w AS high, AVG(price) OVER w AS a FROM bids WINDOW w AS (PARTITION BY item ORDER BY time)

--query rows
SELECT time, SUM(price) OVER (ORDER BY time ROWS UNBOUNDED PRECEDING) AS s, item, price FROM bids WHERE time <> 3

--query before
SELECT time, item, MAX(price) OVER (PARTITION BY item ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS record FROM bids

--query ranks
SELECT time, RANK() OVER (ORDER BY time) AS r, DENSE_RANK() OVER (ORDER BY time) AS d FROM bids

--plan
-- before@1: TIMELINE BY item AS key0 AGG MAX(price) OVER ROWS UNBOUNDED PRECEDING -1 FOLLOWING AS MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) by (item) from bids select time, item, price, level 1
-- ranks@1: TIMELINE BY  AGG RANK() AS RANK() OVER (ORDER BY time NULLS LAST), DENSE_RANK() AS DENSE_RANK() OVER (ORDER BY time NULLS LAST) by () from bids select time, level 1
-- so_far@1: TIMELINE BY item AS key0 AGG SUM(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), COUNT(*) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST), COUNT(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS COUNT(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), MIN(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS MIN(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), MAX(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), AVG(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS AVG(price) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, price, level 1
-- rows@1: TIMELINE BY  AGG SUM(price) OVER ROWS UNBOUNDED PRECEDING 0 FOLLOWING AS SUM(price) OVER (ORDER BY time NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) by () from bids where time <> 3 select time, item, price, level 1
-- before = before@1 select time, item, "MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)" AS record
-- ranks = ranks@1 select time, "RANK() OVER (ORDER BY time NULLS LAST)" AS r, "DENSE_RANK() OVER (ORDER BY time NULLS LAST)" AS d
-- so_far = so_far@1 select time, item, "SUM(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS s, "COUNT(*) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS n, "COUNT(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS p, "MIN(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS low, "MAX(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS high, "AVG(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS a
-- rows = rows@1 select time, "SUM(price) OVER (ORDER BY time NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)" AS s, item, price

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

--expect so_far
-- time int64 | item string | s int64 | n int64 | p int64 | low int64 | high int64 | a float64
-- 1 | car | 100 | 1 | 1 | 100 | 100 | 100.0
-- 3 | car | 220 | 2 | 2 | 100 | 120 | 110.0
-- 3 | hat | 7 | 1 | 1 | 7 | 7 | 7.0
-- 9 | car | 340 | 3 | 3 | 100 | 120 | 113.33333333333333
-- 14 | hat | 16 | 2 | 2 | 7 | 9 | 8.0
-- 21 | pen | NULL | 1 | 0 | NULL | NULL | NULL
-- 25 | car | 430 | 4 | 4 | 90 | 120 | 107.5
-- 40 | hat | 23 | 3 | 3 | 7 | 9 | 7.666666666666667
-- 58 | pen | 2 | 2 | 1 | 2 | 2 | 2.0
-- 61 | car | 630 | 5 | 5 | 90 | 200 | 126.0
-- 63 | car | 780 | 6 | 6 | 90 | 200 | 130.0
-- 64 | hat | 34 | 4 | 4 | 7 | 11 | 8.5
-- 90 | car | 930 | 7 | 7 | 90 | 200 | 132.85714285714286
-- 119 | pen | 5 | 3 | 2 | 2 | 3 | 2.5
-- 125 | hat | 39 | 5 | 5 | 5 | 11 | 7.8
-- 126 | car | 940 | 8 | 8 | 10 | 200 | 117.5

--expect rows
-- time int64 | s int64 | item string | price int64
-- 1 | 100 | car | 100
-- 9 | 220 | car | 120
-- 14 | 229 | hat | 9
-- 21 | 229 | pen | NULL
-- 25 | 319 | car | 90
-- 40 | 326 | hat | 7
-- 58 | 328 | pen | 2
-- 61 | 528 | car | 200
-- 63 | 678 | car | 150
-- 64 | 689 | hat | 11
-- 90 | 839 | car | 150
-- 119 | 842 | pen | 3
-- 125 | 847 | hat | 5
-- 126 | 857 | car | 10

--expect before
-- time int64 | item string | record int64
-- 1 | car | NULL
-- 3 | car | 100
-- 3 | hat | NULL
-- 9 | car | 120
-- 14 | hat | 7
-- 21 | pen | NULL
-- 25 | car | 120
-- 40 | hat | 9
-- 58 | pen | NULL
-- 61 | car | 120
-- 63 | car | 200
-- 64 | hat | 9
-- 90 | car | 200
-- 119 | pen | 2
-- 125 | hat | 11
-- 126 | car | 200

--expect ranks
-- time int64 | r int64 | d int64
-- 1 | 1 | 1
-- 3 | 2 | 2
-- 3 | 2 | 2
-- 9 | 4 | 3
-- 14 | 5 | 4
-- 21 | 6 | 5
-- 25 | 7 | 6
-- 40 | 8 | 7
-- 58 | 9 | 8
-- 61 | 10 | 9
-- 63 | 11 | 10
-- 64 | 12 | 11
-- 90 | 13 | 12
-- 119 | 14 | 13
-- 125 | 15 | 14
-- 126 | 16 | 15

--duckdb so_far
same

--duckdb rows
same

--duckdb before
same

--duckdb ranks
same
