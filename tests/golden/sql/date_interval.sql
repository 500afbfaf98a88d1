-- Times, constants and intervals.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT ts, ts + INTERVAL '1' HOUR AS later, ts - INTERVAL '90 seconds' AS before FROM log WHERE ts >= TIMESTAMP '2026-03-02 00:00:00' AND CAST(ts AS date) = DATE '2026-03-02'

--plan
-- q = log where (ts >= TIMESTAMP '2026-03-02 00:00:00') & (CAST(ts AS date) = DATE '2026-03-02') select ts, ts + INTERVAL '1:00:00' AS later, ts - INTERVAL '0:01:30' AS before

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
-- ts timestamp | later timestamp | before timestamp
-- 2026-03-02 00:00:05 | 2026-03-02 01:00:05 | 2026-03-01 23:58:35
-- 2026-03-02 00:00:40 | 2026-03-02 01:00:40 | 2026-03-01 23:59:10
-- 2026-03-02 00:01:00 | 2026-03-02 01:01:00 | 2026-03-01 23:59:30
-- 2026-03-02 00:03:30 | 2026-03-02 01:03:30 | 2026-03-02 00:02:00
-- 2026-03-02 00:03:31 | 2026-03-02 01:03:31 | 2026-03-02 00:02:01

--duckdb q
same
