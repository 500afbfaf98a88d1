-- MIN and MAX of numbers, texts and times; NULL does not count.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT window_start, MIN(ms) AS fastest, MAX(ms) AS slowest, MIN(host) AS first, MAX(ts) AS newest
FROM log GROUP BY TUMBLE(ts, '1 day')

--plan
-- q@1: aggregate TUMBLE(86400000000) by () from log, sub-aggregated, level 1
-- q = q@1 select window_start, fastest, slowest, first, newest

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
-- window_start timestamp | fastest float64 | slowest float64 | first string | newest timestamp
-- 2026-03-01 00:00:00 | 3.25 | 12.5 | db | 2026-03-01 23:59:50
-- 2026-03-02 00:00:00 | 1.0 | 100.0 | db | 2026-03-02 00:03:31

--duckdb q
SELECT date_trunc('day', ts) AS window_start, min(ms) AS fastest, max(ms) AS slowest, min(host) AS first, max(ts) AS newest
FROM log GROUP BY ALL
