-- Where ORDER BY puts NULL, and what CONCAT makes of it, by the dialect.

--stream bids: time int64, item string, price int64; ordered by time

--query ours
SELECT time, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price) AS up, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC) AS down, CONCAT(item, '-', price) AS t FROM bids

--query duckdb dialect=duckdb
SELECT time, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price) AS up, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC) AS down, CONCAT(item, '-', price, NULL) AS t FROM bids

--query spark dialect=spark
SELECT time, ROW_NUMBER() OVER (PARTITION BY time DIV 60 ORDER BY price) AS up, ROW_NUMBER() OVER (PARTITION BY time DIV 60 ORDER BY price DESC) AS down, CONCAT(item, '-', price) AS t FROM bids

--query flink dialect=flink
SELECT time, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price ASC) AS up, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price NULLS LAST) AS down, CONCAT(item, '-', price) AS t FROM bids

--query postgres dialect=postgres
SELECT time, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price) AS up, ROW_NUMBER() OVER (PARTITION BY time // 60 ORDER BY price DESC) AS down, CONCAT(item, '-', price) AS t FROM bids

--query lists dialect=postgres
SELECT time // 60 AS m, ARRAY_AGG(time ORDER BY price DESC) AS down, ARRAY_AGG(time ORDER BY price NULLS FIRST) AS up, ARRAY_AGG(time ORDER BY price) AS plain FROM bids GROUP BY time // 60

--plan
-- lists@1: aggregate TUMBLE(60 AS m) by () from bids, sub-aggregated, level 1
-- duckdb@1: RANKED 60 BY  ORDER BY price AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST) by () from bids, level 1
-- flink@1: RANKED 60 BY  ORDER BY price NULLS FIRST AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price ASC) by () from bids, level 1
-- spark@1: RANKED 60 BY  ORDER BY price NULLS FIRST AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price) by () from bids, level 1
-- duckdb@2: RANKED 60 BY  ORDER BY price DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC) by () from duckdb@1, level 2
-- flink@2: RANKED 60 BY  ORDER BY price AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST) by () from flink@1, level 2
-- postgres@1: RANKED 60 BY  ORDER BY price DESC NULLS FIRST AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC NULLS FIRST) by () from duckdb@1, level 2
-- spark@2: RANKED 60 BY  ORDER BY price DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC) by () from spark@1, level 2
-- lists = lists@1
-- duckdb = duckdb@2 select time, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS up, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" AS down, CONCAT(COALESCE(item, ''), '-', COALESCE(CAST(price AS string), ''), COALESCE(CAST(NULL AS string), '')) AS t
-- flink = flink@2 select time, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price ASC)" AS up, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS down, CONCAT(item, '-', price) AS t
-- ours = duckdb@2 select time, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS up, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" AS down, CONCAT(item, '-', price) AS t
-- postgres = postgres@1 select time, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price NULLS LAST)" AS up, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC NULLS FIRST)" AS down, CONCAT(COALESCE(item, ''), '-', COALESCE(CAST(price AS string), '')) AS t
-- spark = spark@2 select time, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price)" AS up, "ROW_NUMBER() OVER (PARTITION BY CAST(time / 60 AS BIGINT) ORDER BY price DESC)" AS down, CONCAT(item, '-', price) AS t

--input bids
-- time | item | price
-- 1 | car | 100
-- 3 | hat | NULL
-- ~
-- 14 | NULL | 9

--expect ours
-- time int64 | up int64 | down int64 | t string
-- 1 | 2 | 1 | car-100
-- 3 | 3 | 3 | NULL
-- 14 | 1 | 2 | NULL

--expect duckdb
-- time int64 | up int64 | down int64 | t string
-- 1 | 2 | 1 | car-100
-- 3 | 3 | 3 | hat-
-- 14 | 1 | 2 | -9

--expect spark
-- time int64 | up int64 | down int64 | t string
-- 1 | 3 | 1 | car-100
-- 3 | 1 | 3 | NULL
-- 14 | 2 | 2 | NULL

--expect flink
-- time int64 | up int64 | down int64 | t string
-- 1 | 3 | 2 | car-100
-- 3 | 1 | 3 | NULL
-- 14 | 2 | 1 | NULL

--expect postgres
-- time int64 | up int64 | down int64 | t string
-- 1 | 2 | 2 | car-100
-- 3 | 3 | 1 | hat-
-- 14 | 1 | 3 | -9

--expect lists
-- m int64 | down list(int64) | up list(int64) | plain list(int64)
-- 0 | [3, 1, 14] | [3, 14, 1] | [14, 1, 3]

--duckdb duckdb
same
