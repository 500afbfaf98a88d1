-- Windows as join keys: rows that share a window meet, and groups of the same window.

--stream bid: date_time timestamp, auction int64, bidder int64, price int64; ordered by date_time

--query rows
SELECT a.auction, a.price, b.price AS other FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) a JOIN TUMBLE(bid, date_time, INTERVAL '10' SECOND) b ON a.window_start = b.window_start AND a.auction = b.auction

--query groups
SELECT a.window_start, a.auction, a.n, m.most FROM (SELECT window_start, auction, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_start, auction) a JOIN (SELECT window_start, max(price) AS most FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_start) m ON a.window_start = m.window_start

--query ends
SELECT b.auction, b.price, m.window_end FROM bid b JOIN (SELECT max(price) AS most, window_end FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) m ON b.price = m.most WHERE b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end

--plan
-- rows@1: INNER JOIN ON window_start = window_start AND auction = auction AS b by (auction) = (auction) from bid windows TUMBLE(10000000) of date_time and bid windows TUMBLE(10000000) of date_time, level 1
-- ends@1: aggregate TUMBLE(10000000) by () from bid, sub-aggregated, level 1
-- groups@1: aggregate TUMBLE(10000000) by (auction) from bid, sub-aggregated, level 1
-- ends@2: INNER JOIN ON price = most WHERE (date_time >= (window_end - INTERVAL '0:00:10')) & (date_time <= window_end) AS m by (price) = (most) from bid and ends@1 select most, window_end, level 2
-- groups@2: INNER JOIN ON window_start = window_start AS m by (window_start) = (window_start) from groups@1 select window_start, auction, n and ends@1 select window_start, most, level 2
-- rows = rows@1 select auction, price, price_b AS other
-- ends = ends@2 select auction, price, window_end
-- groups = groups@2 select window_start, auction, n, most

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

--expect rows
-- auction int64 | price int64 | other int64
-- 1 | 100 | 100
-- 1 | 100 | 120
-- 1 | 120 | 100
-- 1 | 120 | 120
-- 1 | 130 | 130
-- 1 | 140 | 140
-- 2 | 250 | 250
-- 2 | 300 | 300
-- 2 | 310 | 310
-- 3 | 90 | 90

--duckdb rows
WITH w AS (SELECT *, time_bucket(INTERVAL '10 seconds', date_time) AS ws FROM bid) SELECT a.auction, a.price, b.price AS other FROM w a JOIN w b ON a.ws = b.ws AND a.auction = b.auction

--expect groups
-- window_start timestamp | auction int64 | n int64 | most int64
-- 2026-01-01 00:00:00 | 1 | 2 | 250
-- 2026-01-01 00:00:00 | 2 | 1 | 250
-- 2026-01-01 00:00:10 | 1 | 1 | 300
-- 2026-01-01 00:00:10 | 2 | 1 | 300
-- 2026-01-01 00:00:10 | 3 | 1 | 300
-- 2026-01-01 00:00:20 | 2 | 1 | 310
-- 2026-01-01 00:00:30 | 1 | 1 | 140

--duckdb groups
WITH w AS (SELECT *, time_bucket(INTERVAL '10 seconds', date_time) AS ws FROM bid) SELECT a.ws AS window_start, a.auction, a.n, m.most FROM (SELECT ws, auction, count(*) AS n FROM w GROUP BY ALL) a JOIN (SELECT ws, max(price) AS most FROM w GROUP BY ws) m ON a.ws = m.ws

--expect ends
-- auction int64 | price int64 | window_end timestamp
-- 1 | 140 | 2026-01-01 00:00:40
-- 2 | 250 | 2026-01-01 00:00:10
-- 2 | 300 | 2026-01-01 00:00:20
-- 2 | 310 | 2026-01-01 00:00:30

--duckdb ends
SELECT b.auction, b.price, m.e AS window_end FROM bid b JOIN (SELECT max(price) AS most, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS e FROM bid GROUP BY 2) m ON b.price = m.most WHERE b.date_time BETWEEN m.e - INTERVAL '10 seconds' AND m.e
