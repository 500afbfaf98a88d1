-- A prefix of a text as a key.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT kind, COUNT(*) AS n FROM log GROUP BY TUMBLE(ts, '1 day'), SPLIT_PART(host, '-', 1) AS kind

--plan
-- q@1: aggregate TUMBLE(86400000000) by (SPLIT_PART(host, '-', 1)) from log, sub-aggregated, level 1
-- q = q@1 select kind, n

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
-- kind string | n int64
-- db | 1
-- db | 1
-- web | 1
-- web | 3
-- NULL | 1

--duckdb q
SELECT kind, n FROM (SELECT date_trunc('day', ts) AS d, split_part(host, '-', 1) AS kind, count(*) AS n FROM log GROUP BY ALL)
