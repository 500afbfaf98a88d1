-- NULL comes last, ascending and descending, unless NULLS FIRST is said.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query up
SELECT time, price, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price, time) AS n FROM bids

--query down
SELECT time, price, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC, time) AS n FROM bids QUALIFY n >= 6

--query front
SELECT time, price, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price NULLS FIRST, time) AS n FROM bids QUALIFY n = 1

--plan
-- up@1: RANKED 60 BY  ORDER BY price, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST) by () from bids select time, price, level 1
-- down@1: RANKED 60 BY  ORDER BY price DESC, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST) by () from bids select time, price, level 1
-- front@1: RANKED 60 BY  ORDER BY price NULLS FIRST, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price, time NULLS LAST) LIMIT ROW_NUMBER <= 1 by () from bids select time, price, sub-aggregated, level 1
-- up = up@1 select time, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" AS n
-- down = down@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST)" >= 6 select time, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST)" AS n
-- front = front@1 where "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price, time NULLS LAST)" = 1 select time, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price, time NULLS LAST)" AS n

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

--expect up
-- time int64 | price int64 | n int64
-- 1 | 100 | 6
-- 3 | 7 | 2
-- 3 | 120 | 7
-- 9 | 120 | 8
-- 14 | 9 | 4
-- 21 | NULL | 9
-- 25 | 90 | 5
-- 40 | 7 | 3
-- 58 | 2 | 1
-- 61 | 200 | 5
-- 63 | 150 | 3
-- 64 | 11 | 2
-- 90 | 150 | 4
-- 119 | 3 | 1
-- 125 | 5 | 1
-- 126 | 10 | 2

--expect down
-- time int64 | price int64 | n int64
-- 3 | 7 | 6
-- 21 | NULL | 9
-- 40 | 7 | 7
-- 58 | 2 | 8

--expect front
-- time int64 | price int64 | n int64
-- 21 | NULL | 1
-- 119 | 3 | 1
-- 125 | 5 | 1

--duckdb up
same

--duckdb down
same

--duckdb front
same
