-- HOP over timestamps, from the evening into the next day.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT window_start, COUNT(*) AS n, MAX(ms) AS slowest FROM log GROUP BY HOP(ts, '2 minutes', '1 minute')

--plan
-- q@1: aggregate HOP(120000000, 60000000) by () from log, sub-aggregated, level 1
-- q = q@1 select window_start, n, slowest

--input log
-- ts | host | ms | ok
-- 2026-03-01 23:59:10 | web-1 | 12.5 | true
-- 2026-03-01 23:59:50 | db | 3.25 | true
-- 2026-03-02 00:00:05 | web-1 | 8.0 | false
-- ~
-- 2026-03-02 00:00:40 | web-2 | NULL | NULL
-- 2026-03-02 00:01:00 | db | 4.5 | true
-- ~
-- 2026-03-02 00:03:30 | web-1 | 100.0 | false
-- 2026-03-02 00:03:31 | NULL | 1.0 | true

--expect q
-- window_start timestamp | n int64 | slowest float64
-- 2026-03-01 23:58:00 | 2 | 12.5
-- 2026-03-01 23:59:00 | 4 | 12.5
-- 2026-03-02 00:00:00 | 3 | 8.0
-- 2026-03-02 00:01:00 | 1 | 4.5
-- 2026-03-02 00:02:00 | 2 | 100.0
-- 2026-03-02 00:03:00 | 2 | 100.0

--duckdb q
SELECT s AS window_start, count(*) AS n, max(ms) AS slowest
FROM log, range(TIMESTAMP '2026-03-01 23:50:00', TIMESTAMP '2026-03-02 00:10:00', INTERVAL '1 minute') r(s)
WHERE ts >= s AND ts < s + INTERVAL '2 minutes' GROUP BY ALL
