-- DATE_TRUNC cuts a time to its minute, day, week (from Monday) or month.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT ts, DATE_TRUNC('minute', ts) AS mi, DATE_TRUNC('day', ts) AS d, DATE_TRUNC('week', ts) AS w, DATE_TRUNC('month', CAST(ts AS date)) AS m FROM log

--plan
-- q = log select ts, DATE_TRUNC('minute', ts) AS mi, DATE_TRUNC('day', ts) AS d, DATE_TRUNC('week', ts) AS w, DATE_TRUNC('month', CAST(CAST(ts AS date) AS timestamp)) AS m

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
-- ts timestamp | mi timestamp | d timestamp | w timestamp | m timestamp
-- 2026-03-01 23:59:10 | 2026-03-01 23:59:00 | 2026-03-01 00:00:00 | 2026-02-23 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-01 23:59:50 | 2026-03-01 23:59:00 | 2026-03-01 00:00:00 | 2026-02-23 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-02 00:00:05 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-02 00:00:40 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-02 00:01:00 | 2026-03-02 00:01:00 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-02 00:03:30 | 2026-03-02 00:03:00 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-01 00:00:00
-- 2026-03-02 00:03:31 | 2026-03-02 00:03:00 | 2026-03-02 00:00:00 | 2026-03-02 00:00:00 | 2026-03-01 00:00:00

--duckdb q
same
