-- Windows of FROM: rows with their borders, and groups by them, as RisingWave writes them.

--stream bid: date_time timestamp, auction int64, bidder int64, price int64; ordered by date_time

--query raw
SELECT auction, price, window_start, window_end FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)

--query counts
SELECT window_start, window_end, auction, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_start, window_end, auction

--query by_end
SELECT MAX(price) AS maxprice, window_end AS date_time FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY window_end

--query filtered
SELECT window_start AS s, count(*) AS n FROM TUMBLE(bid, date_time, '10 s') WHERE price > 100 GROUP BY window_start HAVING count(*) > 1

--query shifted
SELECT window_start, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND, INTERVAL '3' SECOND) GROUP BY window_start

--plan
-- counts@1: aggregate TUMBLE(10000000) by (auction) from bid, sub-aggregated, level 1
-- by_end@1: aggregate TUMBLE(10000000) by () from bid, sub-aggregated, level 1
-- shifted@1: aggregate TUMBLE(1 AS window_start) by () from bid windows TUMBLE(10000000, 3000000) of date_time select date_time, auction, bidder, price, window_start, window_end, sub-aggregated, level 1
-- filtered@1: aggregate TUMBLE(10000000) by () from bid where price > 100, sub-aggregated, level 1
-- counts = counts@1
-- raw = bid windows TUMBLE(10000000) of date_time select auction, price, window_start, window_end
-- by_end = by_end@1 select window_end AS date_time, maxprice select maxprice, date_time
-- shifted = shifted@1
-- filtered = filtered@1 select window_start AS s, n where n > 1

--input bid
-- date_time | auction | bidder | price
-- 2026-01-01 00:00:01 | 1 | 10 | 100
-- 2026-01-01 00:00:03 | 2 | 11 | 250
-- 2026-01-01 00:00:09 | 1 | 12 | 120
-- ~
-- 2026-01-01 00:00:10 | 1 | 10 | 130
-- 2026-01-01 00:00:14 | 3 | 11 | 90
-- 2026-01-01 00:00:19 | 2 | 13 | 300
-- ~
-- 2026-01-01 00:00:21 | 2 | 10 | 310
-- 2026-01-01 00:00:35 | 1 | 12 | 140

--expect raw
-- auction int64 | price int64 | window_start timestamp | window_end timestamp
-- 1 | 100 | 2026-01-01 00:00:00 | 2026-01-01 00:00:10
-- 1 | 120 | 2026-01-01 00:00:00 | 2026-01-01 00:00:10
-- 1 | 130 | 2026-01-01 00:00:10 | 2026-01-01 00:00:20
-- 1 | 140 | 2026-01-01 00:00:30 | 2026-01-01 00:00:40
-- 2 | 250 | 2026-01-01 00:00:00 | 2026-01-01 00:00:10
-- 2 | 300 | 2026-01-01 00:00:10 | 2026-01-01 00:00:20
-- 2 | 310 | 2026-01-01 00:00:20 | 2026-01-01 00:00:30
-- 3 | 90 | 2026-01-01 00:00:10 | 2026-01-01 00:00:20

--duckdb raw
SELECT auction, price, time_bucket(INTERVAL '10 seconds', date_time) AS window_start, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS window_end FROM bid

--expect counts
-- window_start timestamp | window_end timestamp | auction int64 | n int64
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:10 | 1 | 2
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:10 | 2 | 1
-- 2026-01-01 00:00:10 | 2026-01-01 00:00:20 | 1 | 1
-- 2026-01-01 00:00:10 | 2026-01-01 00:00:20 | 2 | 1
-- 2026-01-01 00:00:10 | 2026-01-01 00:00:20 | 3 | 1
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:30 | 2 | 1
-- 2026-01-01 00:00:30 | 2026-01-01 00:00:40 | 1 | 1

--duckdb counts
SELECT time_bucket(INTERVAL '10 seconds', date_time) AS window_start, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS window_end, auction, count(*) AS n FROM bid GROUP BY ALL

--expect by_end
-- maxprice int64 | date_time timestamp
-- 140 | 2026-01-01 00:00:40
-- 250 | 2026-01-01 00:00:10
-- 300 | 2026-01-01 00:00:20
-- 310 | 2026-01-01 00:00:30

--duckdb by_end
SELECT max(price) AS maxprice, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS date_time FROM bid GROUP BY 2

--expect filtered
-- s timestamp | n int64
-- 2026-01-01 00:00:00 | 2
-- 2026-01-01 00:00:10 | 2

--duckdb filtered
SELECT time_bucket(INTERVAL '10 seconds', date_time) AS s, count(*) AS n FROM bid WHERE price > 100 GROUP BY 1 HAVING count(*) > 1

--expect shifted
-- window_start timestamp | n int64
-- 2025-12-31 23:59:53 | 1
-- 2026-01-01 00:00:03 | 3
-- 2026-01-01 00:00:13 | 3
-- 2026-01-01 00:00:33 | 1

--duckdb shifted
SELECT time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01 00:00:03') AS window_start, count(*) AS n FROM bid GROUP BY 1
