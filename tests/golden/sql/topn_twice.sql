-- Two orders in one SELECT, and a limit that is computed with.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, item, price, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC, time) AS best, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price, time) AS least FROM bids QUALIFY best <= 2 OR least = 1

--query between
SELECT * FROM (SELECT time, price, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC, time) AS n FROM bids WHERE item <> 'pen') WHERE n BETWEEN 2 AND 3 AND price > 7

--plan
-- between@1: RANKED 60 BY  ORDER BY price DESC, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST) LIMIT ROW_NUMBER <= 3 by () from bids where item <> 'pen' select time, price, sub-aggregated, level 1
-- q@1: RANKED 60 BY  ORDER BY price DESC, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST) by () from bids select time, item, price, level 1
-- q@2: RANKED 60 BY  ORDER BY price, time AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST) by () from q@1, level 2
-- between = between@1 select time, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST)" AS n where ((n >= 2) & (n <= 3)) & (price > 7)
-- q = q@2 where ("ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST)" <= 2) | ("ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" = 1) select time, item, price, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC, time NULLS LAST)" AS best, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST, time NULLS LAST)" AS least

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

--expect q
-- time int64 | item string | price int64 | best int64 | least int64
-- 3 | car | 120 | 1 | 7
-- 9 | car | 120 | 2 | 8
-- 58 | pen | 2 | 8 | 1
-- 61 | car | 200 | 1 | 5
-- 63 | car | 150 | 2 | 3
-- 119 | pen | 3 | 5 | 1
-- 125 | hat | 5 | 2 | 1
-- 126 | car | 10 | 1 | 2

--expect between
-- time int64 | price int64 | n int64
-- 1 | 100 | 3
-- 9 | 120 | 2
-- 63 | 150 | 2
-- 90 | 150 | 3

--duckdb q
same

--duckdb between
same
