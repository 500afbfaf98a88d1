-- The same as Flink writes it: TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), size)), with names or without.

--stream bid: date_time timestamp, auction int64, bidder int64, price int64; ordered by date_time

--query counts dialect=flink
SELECT window_start, window_end, SUM(price) AS s FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end

--query named dialect=flink
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(date_time), SIZE => INTERVAL '10' SECONDS)) GROUP BY window_start, window_end

--query grouped dialect=flink
SELECT TUMBLE_START(date_time, INTERVAL '10' SECOND) AS s, TUMBLE_END(date_time, INTERVAL '10' SECOND) AS e, COUNT(*) AS n FROM bid GROUP BY TUMBLE(date_time, INTERVAL '10' SECOND)

--query rowtime dialect=flink
SELECT TUMBLE_ROWTIME(date_time, INTERVAL '10' SECOND) AS r, COUNT(*) AS n FROM bid GROUP BY TUMBLE(date_time, INTERVAL '10' SECOND)

--plan
-- counts@1: aggregate TUMBLE(10000000) by () from bid, sub-aggregated, level 1
-- grouped@1: aggregate TUMBLE(10000000) by () from bid, sub-aggregated, level 1
-- counts = counts@1
-- grouped = grouped@1 select window_start AS s, window_end AS e, n
-- named = grouped@1 select window_start, n
-- rowtime = grouped@1 select window_end - INTERVAL '0:00:00.001000' AS r, n

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
-- window_start timestamp | window_end timestamp | s int64
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:10 | 470
-- 2026-01-01 00:00:10 | 2026-01-01 00:00:20 | 520
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:30 | 310
-- 2026-01-01 00:00:30 | 2026-01-01 00:00:40 | 140

--duckdb counts
SELECT time_bucket(INTERVAL '10 seconds', date_time) AS window_start, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS window_end, sum(price) AS s FROM bid GROUP BY ALL

--expect named
-- window_start timestamp | n int64
-- 2026-01-01 00:00:00 | 3
-- 2026-01-01 00:00:10 | 3
-- 2026-01-01 00:00:20 | 1
-- 2026-01-01 00:00:30 | 1

--duckdb named
SELECT time_bucket(INTERVAL '10 seconds', date_time) AS window_start, count(*) AS n FROM bid GROUP BY ALL

--expect grouped
-- s timestamp | e timestamp | n int64
-- 2026-01-01 00:00:00 | 2026-01-01 00:00:10 | 3
-- 2026-01-01 00:00:10 | 2026-01-01 00:00:20 | 3
-- 2026-01-01 00:00:20 | 2026-01-01 00:00:30 | 1
-- 2026-01-01 00:00:30 | 2026-01-01 00:00:40 | 1

--duckdb grouped
SELECT time_bucket(INTERVAL '10 seconds', date_time) AS s, time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '10 seconds' AS e, count(*) AS n FROM bid GROUP BY ALL

--expect rowtime
-- r timestamp | n int64
-- 2026-01-01 00:00:09.999000 | 3
-- 2026-01-01 00:00:19.999000 | 3
-- 2026-01-01 00:00:29.999000 | 1
-- 2026-01-01 00:00:39.999000 | 1

--duckdb rowtime
SELECT time_bucket(INTERVAL '10 seconds', date_time) + INTERVAL '9.999 seconds' AS r, count(*) AS n FROM bid GROUP BY ALL
