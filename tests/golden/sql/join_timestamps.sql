-- Times as timestamps: how far apart rows may be is an interval.

--stream asked: ts timestamp, host string, path string; ordered by ts
--stream done: ts timestamp, host string, ok boolean; ordered by ts

--query q
SELECT a.ts, a.host, a.path, d.ts AS done, d.ok
FROM asked a LEFT JOIN done d ON a.host = d.host AND d.ts BETWEEN a.ts AND a.ts + INTERVAL '30 seconds'

--plan
-- q@1: LEFT JOIN ON host = host WHERE (ts_d >= ts) & (ts_d <= (ts + INTERVAL '0:00:30')) AS d by (host) = (host) from asked and done, level 1
-- q = q@1 select ts, host, path, ts_d AS done, ok

--input asked
-- ts | host | path
-- 2026-03-01 23:59:10 | web-1 | /
-- 2026-03-01 23:59:50 | db | /x
-- ~
-- 2026-03-02 00:00:05 | web-1 | /y
-- 2026-03-02 00:00:07 | NULL | /
-- ~
-- 2026-03-02 00:03:00 | db | /

--input done
-- ts | host | ok
-- 2026-03-01 23:59:12 | web-1 | true
-- 2026-03-01 23:59:55 | web-1 | false
-- ~
-- 2026-03-02 00:00:20 | db | true
-- 2026-03-02 00:00:21 | web-1 | true
-- ~
-- 2026-03-02 00:03:31 | db | true

--expect q
-- ts timestamp | host string | path string | done timestamp | ok boolean
-- 2026-03-01 23:59:10 | web-1 | / | 2026-03-01 23:59:12 | true
-- 2026-03-01 23:59:50 | db | /x | 2026-03-02 00:00:20 | true
-- 2026-03-02 00:00:05 | web-1 | /y | 2026-03-02 00:00:21 | true
-- 2026-03-02 00:00:07 | NULL | / | NULL | NULL
-- 2026-03-02 00:03:00 | db | / | NULL | NULL

--duckdb q
same
