-- RANGE INTERVAL … PRECEDING of timestamps that come out of order.

--stream clicks: ts timestamp, page string, ms int64; ordered by ts; lateness 10 seconds

--query q
SELECT ts, page, COUNT(*) OVER (PARTITION BY page ORDER BY ts RANGE BETWEEN INTERVAL '90' SECOND PRECEDING AND CURRENT ROW) AS n, SUM(ms) OVER (PARTITION BY page ORDER BY ts RANGE INTERVAL '1 minute' PRECEDING) AS s FROM clicks

--query previous
SELECT ts, page, LAG(ts) OVER (PARTITION BY page ORDER BY ts) AS before, ROW_NUMBER() OVER (PARTITION BY page ORDER BY ts) AS n FROM clicks

--plan
-- q@1: TIMELINE BY page AS key0 AGG COUNT(*) OVER RANGE 90000000 PRECEDING 0 FOLLOWING AS COUNT(*) OVER (PARTITION BY page ORDER BY ts NULLS LAST RANGE BETWEEN INTERVAL '90' SECOND PRECEDING AND CURRENT ROW), SUM(ms) OVER RANGE 60000000 PRECEDING 0 FOLLOWING AS SUM(ms) OVER (PARTITION BY page ORDER BY ts NULLS LAST RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND CURRENT ROW) by (page) from clicks, level 1
-- previous@1: TIMELINE BY page AS key0 AGG LAG 1(ts) AS LAG(ts) OVER (PARTITION BY page ORDER BY ts NULLS LAST), ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY page ORDER BY ts NULLS LAST) by (page) from clicks select ts, page, level 1
-- q = q@1 select ts, page, "COUNT(*) OVER (PARTITION BY page ORDER BY ts NULLS LAST RANGE BETWEEN INTERVAL '90' SECOND PRECEDING AND CURRENT ROW)" AS n, "SUM(ms) OVER (PARTITION BY page ORDER BY ts NULLS LAST RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND CURRENT ROW)" AS s
-- previous = previous@1 select ts, page, "LAG(ts) OVER (PARTITION BY page ORDER BY ts NULLS LAST)" AS before, "ROW_NUMBER() OVER (PARTITION BY page ORDER BY ts NULLS LAST)" AS n

--input clicks
-- ts | page | ms
-- 2026-03-01 10:00:05 | a | 30
-- 2026-03-01 10:00:02 | b | 20
-- 2026-03-01 10:00:30 | a | 10
-- ~
-- 2026-03-01 10:01:10 | a | 50
-- 2026-03-01 10:01:05 | c | 45
-- 2026-03-01 10:01:40 | b | NULL
-- ~
-- 2026-03-01 10:03:00 | a | 5
-- 2026-03-01 10:03:01 | c | 60
-- 2026-03-01 10:02:58 | b | 15

--expect q
-- ts timestamp | page string | n int64 | s int64
-- 2026-03-01 10:00:02 | b | 1 | 20
-- 2026-03-01 10:00:05 | a | 1 | 30
-- 2026-03-01 10:00:30 | a | 2 | 40
-- 2026-03-01 10:01:05 | c | 1 | 45
-- 2026-03-01 10:01:10 | a | 3 | 60
-- 2026-03-01 10:01:40 | b | 1 | NULL
-- 2026-03-01 10:02:58 | b | 2 | 15
-- 2026-03-01 10:03:00 | a | 1 | 5
-- 2026-03-01 10:03:01 | c | 1 | 60

--expect previous
-- ts timestamp | page string | before timestamp | n int64
-- 2026-03-01 10:00:02 | b | NULL | 1
-- 2026-03-01 10:00:05 | a | NULL | 1
-- 2026-03-01 10:00:30 | a | 2026-03-01 10:00:05 | 2
-- 2026-03-01 10:01:05 | c | NULL | 1
-- 2026-03-01 10:01:10 | a | 2026-03-01 10:00:30 | 3
-- 2026-03-01 10:01:40 | b | 2026-03-01 10:00:02 | 2
-- 2026-03-01 10:02:58 | b | 2026-03-01 10:01:40 | 3
-- 2026-03-01 10:03:00 | a | 2026-03-01 10:01:10 | 4
-- 2026-03-01 10:03:01 | c | 2026-03-01 10:01:05 | 2

--duckdb q
same

--duckdb previous
same
