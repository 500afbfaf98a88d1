-- CUMULATE: windows that begin together and grow step by step.

--stream bid: date_time timestamp, auction int64, bidder int64, price int64; ordered by date_time

--query counts
SELECT window_start, window_end, count(*) AS n FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end

--query totals
SELECT window_end, sum(price) AS total FROM CUMULATE(bid, date_time, '10 seconds', '30 seconds') GROUP BY window_end

--plan
-- counts@1: aggregate TUMBLE(1 AS window_start) by (window_end) from bid windows CUMULATE(5000000, 20000000) of date_time select date_time, auction, bidder, price, window_start, window_end, sub-aggregated, level 1
-- totals@1: aggregate TUMBLE(1 AS window_end) by () from bid windows CUMULATE(10000000, 30000000) of date_time select date_time, auction, bidder, price, window_start, window_end, sub-aggregated, level 1
-- counts = counts@1
-- totals = totals@1

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

--expect counts
-- window_start timestamp | window_end timestamp | n int64
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:05 | 2
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:10 | 3
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:15 | 5
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:20 | 6
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:25 | 1
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:30 | 1
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:35 | 1
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:40 | 2

--duckdb counts
SELECT s AS window_start, e AS window_end, count(*) AS n FROM (SELECT *, time_bucket(INTERVAL '20 seconds', date_time) AS s, unnest(generate_series(s + INTERVAL '5 seconds', s + INTERVAL '20 seconds', INTERVAL '5 seconds')) AS e FROM bid) WHERE e > date_time GROUP BY ALL

--expect totals
-- window_end timestamp | total int64
-- 2026-01-01 00:00:10 | 470
-- 2026-01-01 00:00:20 | 990
-- 2026-01-01 00:00:30 | 1300
-- 2026-01-01 00:00:40 | 140
-- 2026-01-01 00:00:50 | 140
-- 2026-01-01 00:01:00 | 140

--duckdb totals
SELECT e AS window_end, sum(price) AS total FROM (SELECT *, time_bucket(INTERVAL '30 seconds', date_time) AS s, unnest(generate_series(s + INTERVAL '10 seconds', s + INTERVAL '30 seconds', INTERVAL '10 seconds')) AS e FROM bid) WHERE e > date_time GROUP BY 1
