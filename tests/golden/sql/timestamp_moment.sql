-- GROUP BY a timestamp itself keeps it a timestamp.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT ts, COUNT(*) AS n, AVG(ms) AS mean FROM log GROUP BY ts

--plan
-- q@1: aggregate TUMBLE(1 AS ts) by () from log, sub-aggregated, level 1
-- q = q@1

--input log
-- ts | host | ms | ok
-- 2026-03-01 23:59:10 | a | 1.0 | true
-- 2026-03-01 23:59:10 | b | 2.0 | true
-- ~
-- 2026-03-01 23:59:11 | a | NULL | true

--expect q
-- ts timestamp | n int64 | mean float64
-- 2026-03-01 23:59:10 | 2 | 1.5
-- 2026-03-01 23:59:11 | 1 | NULL

--duckdb q
same
