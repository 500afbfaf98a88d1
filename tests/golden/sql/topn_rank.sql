-- RANK and DENSE_RANK: rows in the same place have the same number, and all of them are among the best.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query r
SELECT time, item, price, RANK() OVER (PARTITION BY time // 60 ORDER BY price DESC) AS r FROM bids QUALIFY r <= 2

--query d
SELECT time, item, price, DENSE_RANK() OVER (PARTITION BY time // 60 ORDER BY price DESC) AS r FROM bids QUALIFY r < 3

--query both
SELECT time, RANK() OVER w AS r, DENSE_RANK() OVER w AS d, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price, time) AS n FROM bids WINDOW w AS (PARTITION BY time // 60 ORDER BY price)

--plan
-- both@1: RANKED 60 BY  ORDER BY price AGG RANK() AS RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST), DENSE_RANK() AS DENSE_RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST) by () from bids select time, price, level 1
-- d@1: RANKED 60 BY  ORDER BY price DESC AGG DENSE_RANK() AS DENSE_RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC) LIMIT DENSE_RANK <= 2 by () from bids select time, item, price, sub-aggregated, level 1
-- r@1: RANKED 60 BY  ORDER BY price DESC AGG RANK() AS RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC) LIMIT RANK <= 2 by () from bids select time, item, price, sub-aggregated, level 1
-- both@2: RANKED 60 BY  ORDER BY price, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST) by () from both@1, level 2
-- both = both@2 select time, "RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS r, "DENSE_RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS d, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" AS n
-- d = d@1 where "DENSE_RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" < 3 select time, item, price, "DENSE_RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" AS r
-- r = r@1 where "RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" <= 2 select time, item, price, "RANK() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" AS r

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

--expect r
-- time int64 | item string | price int64 | r int64
-- 3 | car | 120 | 1
-- 9 | car | 120 | 1
-- 61 | car | 200 | 1
-- 63 | car | 150 | 2
-- 90 | car | 150 | 2
-- 125 | hat | 5 | 2
-- 126 | car | 10 | 1

--expect d
-- time int64 | item string | price int64 | r int64
-- 1 | car | 100 | 2
-- 3 | car | 120 | 1
-- 9 | car | 120 | 1
-- 61 | car | 200 | 1
-- 63 | car | 150 | 2
-- 90 | car | 150 | 2
-- 125 | hat | 5 | 2
-- 126 | car | 10 | 1

--expect both
-- time int64 | r int64 | d int64 | n int64
-- 1 | 6 | 5 | 6
-- 3 | 2 | 2 | 2
-- 3 | 7 | 6 | 7
-- 9 | 7 | 6 | 8
-- 14 | 4 | 3 | 4
-- 21 | 9 | 7 | 9
-- 25 | 5 | 4 | 5
-- 40 | 2 | 2 | 3
-- 58 | 1 | 1 | 1
-- 61 | 5 | 4 | 5
-- 63 | 3 | 3 | 3
-- 64 | 2 | 2 | 2
-- 90 | 3 | 3 | 4
-- 119 | 1 | 1 | 1
-- 125 | 1 | 1 | 1
-- 126 | 2 | 2 | 2

--duckdb r
same

--duckdb d
same

--duckdb both
same
