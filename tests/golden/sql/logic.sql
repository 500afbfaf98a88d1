-- IS TRUE, IS NOT FALSE and AND, OR with NULL.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT ts, ok IS TRUE AS t, ok IS NOT TRUE AS nt, ok IS FALSE AS f, ok IS NOT FALSE AS nf, ok AND ms > 5 AS a, ok OR ms > 5 AS o FROM log

--plan
-- q = log select ts, COALESCE(ok, FALSE) AS t, NOT (COALESCE(ok, FALSE)) AS nt, COALESCE(NOT (ok), FALSE) AS f, NOT (COALESCE(NOT (ok), FALSE)) AS nf, ok & (ms > 5) AS a, ok | (ms > 5) AS o

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
-- ts timestamp | t boolean | nt boolean | f boolean | nf boolean | a boolean | o boolean
-- 2026-03-01 23:59:10 | true | false | false | true | true | true
-- 2026-03-01 23:59:50 | true | false | false | true | false | true
-- 2026-03-02 00:00:05 | false | true | true | false | false | true
-- 2026-03-02 00:00:40 | false | true | false | true | NULL | NULL
-- 2026-03-02 00:01:00 | true | false | false | true | false | true
-- 2026-03-02 00:03:30 | false | true | true | false | false | true
-- 2026-03-02 00:03:31 | true | false | false | true | false | true

--duckdb q
same
