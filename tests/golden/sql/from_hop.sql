-- HOP in FROM has the slide before the size.

--stream bid: date_time timestamp, auction int64, bidder int64, price int64; ordered by date_time

--query raw
SELECT auction, window_start FROM HOP(bid, date_time, INTERVAL '5' SECOND, INTERVAL '10' SECOND)

--query counts
SELECT auction, count(*) AS num, window_start AS starttime FROM HOP(bid, date_time, INTERVAL '5' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start

--query of_counts
SELECT max(num) AS maxn, s FROM (SELECT count(*) AS num, window_start AS s FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end) GROUP BY s

--query raw_grouped
SELECT window_end, sum(price) AS p FROM (SELECT window_end, price * 2 AS price FROM HOP(bid, date_time, INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_end

--query group_by dialect=flink
SELECT window_start, count(*) AS n FROM bid GROUP BY HOP(date_time, INTERVAL '5' SECOND, INTERVAL '10' SECOND)

--plan
-- group_by@1: aggregate HOP(10000000, 5000000) by () from bid, sub-aggregated, level 1
-- counts@1: aggregate HOP(10000000, 5000000) by (auction) from bid, sub-aggregated, level 1
-- raw_grouped@1: aggregate TUMBLE(1 AS window_end) by () from bid windows HOP(5000000, 10000000) of date_time select window_end, price * 2 AS price, sub-aggregated, level 1
-- of_counts@1: aggregate TUMBLE(1 AS s) by () from counts@1 select window_start AS s, window_end, auction, num select num, s, sub-aggregated, level 2
-- group_by = group_by@1 select window_start, n
-- raw = bid windows HOP(5000000, 10000000) of date_time select auction, window_start
-- counts = counts@1 select window_start AS starttime, auction, num select auction, num, starttime
-- raw_grouped = raw_grouped@1
-- of_counts = of_counts@1 select maxn, s

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
-- auction int64 | window_start timestamp
-- 1 | 2025-12-31 23:59:55
-- 1 | 2026-01-01 00:00:00
-- 1 | 2026-01-01 00:00:00
-- 1 | 2026-01-01 00:00:05
-- 1 | 2026-01-01 00:00:05
-- 1 | 2026-01-01 00:00:10
-- 1 | 2026-01-01 00:00:30
-- 1 | 2026-01-01 00:00:35
-- 2 | 2025-12-31 23:59:55
-- 2 | 2026-01-01 00:00:00
-- 2 | 2026-01-01 00:00:10
-- 2 | 2026-01-01 00:00:15
-- 2 | 2026-01-01 00:00:15
-- 2 | 2026-01-01 00:00:20
-- 3 | 2026-01-01 00:00:05
-- 3 | 2026-01-01 00:00:10

--duckdb raw
SELECT auction, ws AS window_start FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', date_time) - INTERVAL '5 seconds', time_bucket(INTERVAL '5 seconds', date_time), INTERVAL '5 seconds')) AS ws FROM bid)

--expect counts
-- auction int64 | num int64 | starttime timestamp
-- 1 | 1 | 2025-12-31 23:59:55
-- 1 | 1 | 2026-01-01 00:00:10
-- 1 | 1 | 2026-01-01 00:00:30
-- 1 | 1 | 2026-01-01 00:00:35
-- 1 | 2 | 2026-01-01 00:00:00
-- 1 | 2 | 2026-01-01 00:00:05
-- 2 | 1 | 2025-12-31 23:59:55
-- 2 | 1 | 2026-01-01 00:00:00
-- 2 | 1 | 2026-01-01 00:00:10
-- 2 | 1 | 2026-01-01 00:00:20
-- 2 | 2 | 2026-01-01 00:00:15
-- 3 | 1 | 2026-01-01 00:00:05
-- 3 | 1 | 2026-01-01 00:00:10

--duckdb counts
SELECT auction, count(*) AS num, ws AS starttime FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', date_time) - INTERVAL '5 seconds', time_bucket(INTERVAL '5 seconds', date_time), INTERVAL '5 seconds')) AS ws FROM bid) GROUP BY ALL

--expect of_counts
-- maxn int64 | s timestamp
-- 1 | 2025-12-31 23:59:55
-- 1 | 2026-01-01 00:00:10
-- 1 | 2026-01-01 00:00:20
-- 1 | 2026-01-01 00:00:30
-- 1 | 2026-01-01 00:00:35
-- 2 | 2026-01-01 00:00:00
-- 2 | 2026-01-01 00:00:05
-- 2 | 2026-01-01 00:00:15

--duckdb of_counts
SELECT max(num) AS maxn, s FROM (SELECT count(*) AS num, ws AS s FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', date_time) - INTERVAL '5 seconds', time_bucket(INTERVAL '5 seconds', date_time), INTERVAL '5 seconds')) AS ws FROM bid) GROUP BY auction, ws) GROUP BY s

--expect raw_grouped
-- window_end timestamp | p int64
-- 2026-01-01 00:00:05 | 700
-- 2026-01-01 00:00:10 | 940
-- 2026-01-01 00:00:15 | 680
-- 2026-01-01 00:00:20 | 1040
-- 2026-01-01 00:00:25 | 1220
-- 2026-01-01 00:00:30 | 620
-- 2026-01-01 00:00:40 | 280
-- 2026-01-01 00:00:45 | 280

--duckdb raw_grouped
SELECT ws + INTERVAL '10 seconds' AS window_end, sum(price * 2) AS p FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', date_time) - INTERVAL '5 seconds', time_bucket(INTERVAL '5 seconds', date_time), INTERVAL '5 seconds')) AS ws FROM bid) GROUP BY 1

--expect group_by
-- window_start timestamp | n int64
-- 2025-12-31 23:59:55 | 2
-- 2026-01-01 00:00:00 | 3
-- 2026-01-01 00:00:05 | 3
-- 2026-01-01 00:00:10 | 3
-- 2026-01-01 00:00:15 | 2
-- 2026-01-01 00:00:20 | 1
-- 2026-01-01 00:00:30 | 1
-- 2026-01-01 00:00:35 | 1

--duckdb group_by
SELECT ws AS window_start, count(*) AS n FROM (SELECT *, unnest(generate_series(time_bucket(INTERVAL '5 seconds', date_time) - INTERVAL '5 seconds', time_bucket(INTERVAL '5 seconds', date_time), INTERVAL '5 seconds')) AS ws FROM bid) GROUP BY 1
