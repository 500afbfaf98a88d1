-- An ordered attribute of type timestamp: lengths are written with a unit.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT window_start, window_end, host, COUNT(*) AS n FROM log GROUP BY TUMBLE(ts, '1 minute'), host

--plan
-- q@1: aggregate TUMBLE(60000000) by (host) from log, sub-aggregated, level 1
-- q = q@1

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
-- window_start timestamp | window_end timestamp | host string | n int64
-- 2026-03-01 23:59:00 | 2026-03-02 00:00:00 | db | 1
-- 2026-03-01 23:59:00 | 2026-03-02 00:00:00 | web-1 | 1
-- 2026-03-02 00:00:00 | 2026-03-02 00:01:00 | web-1 | 1
-- 2026-03-02 00:00:00 | 2026-03-02 00:01:00 | web-2 | 1
-- 2026-03-02 00:01:00 | 2026-03-02 00:02:00 | db | 1
-- 2026-03-02 00:03:00 | 2026-03-02 00:04:00 | web-1 | 1
-- 2026-03-02 00:03:00 | 2026-03-02 00:04:00 | NULL | 1

--duckdb q
SELECT date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL '1 minute' AS window_end,
  host, count(*) AS n FROM log GROUP BY ALL
