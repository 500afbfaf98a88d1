-- SESSION over timestamps.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT host, window_start, window_end, COUNT(*) AS n FROM log GROUP BY SESSION(ts, '1 minute'), host

--plan
-- q@1: aggregate SESSION(60000000) by (host) from log, sub-aggregated, level 1
-- q = q@1 select host, window_start, window_end, n

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
-- host string | window_start timestamp | window_end timestamp | n int64
-- db | 2026-03-01 23:59:50 | 2026-03-02 00:00:50 | 1
-- db | 2026-03-02 00:01:00 | 2026-03-02 00:02:00 | 1
-- web-1 | 2026-03-01 23:59:10 | 2026-03-02 00:01:05 | 2
-- web-1 | 2026-03-02 00:03:30 | 2026-03-02 00:04:30 | 1
-- web-2 | 2026-03-02 00:00:40 | 2026-03-02 00:01:40 | 1
-- NULL | 2026-03-02 00:03:31 | 2026-03-02 00:04:31 | 1

--duckdb q
SELECT host, min(ts) AS window_start, max(ts) + INTERVAL '1 minute' AS window_end, count(*) AS n FROM (
  SELECT *, sum(fresh) OVER (PARTITION BY host ORDER BY ts) AS number FROM (
    SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY host ORDER BY ts) < INTERVAL '1 minute' THEN 0 ELSE 1 END
      AS fresh FROM log)) GROUP BY host, number
