-- FIRST_VALUE, LAST_VALUE and NTH_VALUE, in the order of time and within windows.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query far
SELECT time, item, FIRST_VALUE(price) OVER w AS f, LAST_VALUE(price) OVER w AS l, NTH_VALUE(price, 2) OVER w AS n FROM bids WINDOW w AS (PARTITION BY item ORDER BY time)

--query near
SELECT time, item, FIRST_VALUE(time) OVER w AS f, LAST_VALUE(time) OVER w AS l, NTH_VALUE(time, 2) OVER w AS n FROM bids WINDOW w AS (PARTITION BY item ORDER BY time ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)

--query window
SELECT time, item, FIRST_VALUE(item) OVER w AS f, LAST_VALUE(item) OVER w AS l FROM bids WINDOW w AS (PARTITION BY time // 60 ORDER BY time, item ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)

--plan
-- far@1: TIMELINE BY item AS key0 AGG FIRST_VALUE(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS FIRST_VALUE(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), LAST_VALUE(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS LAST_VALUE(price) OVER (PARTITION BY item ORDER BY time NULLS LAST), NTH_VALUE 2(price) OVER RANGE UNBOUNDED PRECEDING 0 FOLLOWING AS NTH_VALUE(price, 2) OVER (PARTITION BY item ORDER BY time NULLS LAST) by (item) from bids select time, item, price, level 1
-- near@1: TIMELINE BY item AS key0 AGG FIRST_VALUE(time) OVER ROWS 2 PRECEDING 1 FOLLOWING AS FIRST_VALUE(time) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING), LAST_VALUE(time) OVER ROWS 2 PRECEDING 1 FOLLOWING AS LAST_VALUE(time) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING), NTH_VALUE 2(time) OVER ROWS 2 PRECEDING 1 FOLLOWING AS NTH_VALUE(time, 2) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) by (item) from bids select time, item, level 1
-- window@1: RANKED 60 BY  ORDER BY time, item AGG FIRST_VALUE(item) OVER ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING AS FIRST_VALUE(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST, item NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), LAST_VALUE(item) OVER ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING AS LAST_VALUE(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST, item NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) by () from bids select time, item, level 1
-- far = far@1 select time, item, "FIRST_VALUE(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS f, "LAST_VALUE(price) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS l, "NTH_VALUE(price, 2) OVER (PARTITION BY item ORDER BY time NULLS LAST)" AS n
-- near = near@1 select time, item, "FIRST_VALUE(time) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)" AS f, "LAST_VALUE(time) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)" AS l, "NTH_VALUE(time, 2) OVER (PARTITION BY item ORDER BY time NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)" AS n
-- window = window@1 select time, item, "FIRST_VALUE(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST, item NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)" AS f, "LAST_VALUE(item) OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY time NULLS LAST, item NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)" AS l

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

--expect far
-- time int64 | item string | f int64 | l int64 | n int64
-- 1 | car | 100 | 100 | NULL
-- 3 | car | 100 | 120 | 120
-- 3 | hat | 7 | 7 | NULL
-- 9 | car | 100 | 120 | 120
-- 14 | hat | 7 | 9 | 9
-- 21 | pen | NULL | NULL | NULL
-- 25 | car | 100 | 90 | 120
-- 40 | hat | 7 | 7 | 9
-- 58 | pen | NULL | 2 | 2
-- 61 | car | 100 | 200 | 120
-- 63 | car | 100 | 150 | 120
-- 64 | hat | 7 | 11 | 9
-- 90 | car | 100 | 150 | 120
-- 119 | pen | NULL | 3 | 2
-- 125 | hat | 7 | 5 | 9
-- 126 | car | 100 | 10 | 120

--expect near
-- time int64 | item string | f int64 | l int64 | n int64
-- 1 | car | 1 | 3 | 3
-- 3 | car | 1 | 9 | 3
-- 3 | hat | 3 | 14 | 14
-- 9 | car | 1 | 25 | 3
-- 14 | hat | 3 | 40 | 14
-- 21 | pen | 21 | 58 | 58
-- 25 | car | 3 | 61 | 9
-- 40 | hat | 3 | 64 | 14
-- 58 | pen | 21 | 119 | 58
-- 61 | car | 9 | 63 | 25
-- 63 | car | 25 | 90 | 61
-- 64 | hat | 14 | 125 | 40
-- 90 | car | 61 | 126 | 63
-- 119 | pen | 21 | 119 | 58
-- 125 | hat | 40 | 125 | 64
-- 126 | car | 63 | 126 | 90

--expect window
-- time int64 | item string | f string | l string
-- 1 | car | car | pen
-- 3 | car | car | pen
-- 3 | hat | car | pen
-- 9 | car | car | pen
-- 14 | hat | car | pen
-- 21 | pen | car | pen
-- 25 | car | car | pen
-- 40 | hat | car | pen
-- 58 | pen | car | pen
-- 61 | car | car | pen
-- 63 | car | car | pen
-- 64 | hat | car | pen
-- 90 | car | car | pen
-- 119 | pen | car | pen
-- 125 | hat | hat | car
-- 126 | car | hat | car

--duckdb far
same

--duckdb near
same

--duckdb window
same
