-- Spark's window() with window.start, its slide and its start time.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query named dialect=spark
SELECT window.start AS s, window.end AS e, count(*) AS c FROM log GROUP BY window(ts, '1 day')

--query sliding dialect=spark
SELECT window.start AS s, count(*) AS c FROM log GROUP BY window(ts, '2 hours', '1 hour')

--query started dialect=spark
SELECT window.start AS s, count(*) AS c FROM log GROUP BY window(ts, '1 hour', '1 hour', '15 minutes')

--query aliased
SELECT w.start AS s, count(*) AS c FROM log GROUP BY tumble(ts, INTERVAL '1 day') AS w

--query arroyo dialect=arroyo
SELECT hop(INTERVAL '1 hour', INTERVAL '2 hours') AS w, host, count(*) AS c FROM log GROUP BY w, host HAVING count(*) > 5

--query session dialect=spark
SELECT window.start AS s, count(*) AS c FROM log GROUP BY session_window(ts, '1 minute')

--plan
-- aliased@1: aggregate TUMBLE(86400000000) by () from log, sub-aggregated, level 1
-- session@1: aggregate SESSION(60000000) by () from log, sub-aggregated, level 1
-- sliding@1: aggregate HOP(7200000000, 3600000000) by () from log, sub-aggregated, level 1
-- arroyo@1: aggregate HOP(7200000000, 3600000000) by (host) from log, sub-aggregated, level 1
-- started@1: aggregate TUMBLE(1 AS window_start) by (window_end) from log windows TUMBLE(3600000000, 900000000) of ts select ts, host, ms, n, window_start, window_end, sub-aggregated, level 1
-- aliased = aliased@1 select window_start AS s, c
-- named = aliased@1 select window_start AS s, window_end AS e, c
-- session = session@1 select window_start AS s, c
-- sliding = sliding@1 select window_start AS s, c
-- arroyo = arroyo@1 where c > 5 select {'start': window_start, 'end': window_end} AS w, host, c
-- started = started@1 select window_start AS s, c

--input log
-- ts | host | ms | n
-- 2026-01-31 23:59:58 | a | 1.5 | 1
-- 2026-01-31 23:59:59.500 | b | 2.0 | 2
-- 2026-02-01 00:00:00 | a | NULL | 3
-- 2026-02-01 00:00:07 | b | 4.25 | 4
-- ~
-- 2026-02-01 00:59:59 | a | 8.0 | 5
-- 2026-02-01 01:00:00 | NULL | 0.5 | 6
-- 2026-02-28 12:00:00 | b | 3.0 | 7
-- ~
-- 2026-03-29 00:30:00 | a | 2.5 | 8
-- 2026-03-29 01:30:00 | a | 6.0 | 9
-- 2026-03-29 23:00:00 | b | 7.0 | 10

--expect named
-- s timestamp | e timestamp | c int64
-- 2026-01-31 00:00:00 | 2026-02-01 00:00:00 | 2
-- 2026-02-01 00:00:00 | 2026-02-02 00:00:00 | 4
-- 2026-02-28 00:00:00 | 2026-03-01 00:00:00 | 1
-- 2026-03-29 00:00:00 | 2026-03-30 00:00:00 | 3

--duckdb named
SELECT date_trunc('day', ts) AS s, s + INTERVAL 1 DAY AS e, count(*) AS c FROM log GROUP BY ALL

--expect sliding
-- s timestamp | c int64
-- 2026-01-31 22:00:00 | 2
-- 2026-01-31 23:00:00 | 5
-- 2026-02-01 00:00:00 | 4
-- 2026-02-01 01:00:00 | 1
-- 2026-02-28 11:00:00 | 1
-- 2026-02-28 12:00:00 | 1
-- 2026-03-28 23:00:00 | 1
-- 2026-03-29 00:00:00 | 2
-- 2026-03-29 01:00:00 | 1
-- 2026-03-29 22:00:00 | 1
-- 2026-03-29 23:00:00 | 1

--duckdb sliding
SELECT ws AS s, count(*) AS c FROM (SELECT *, unnest([date_trunc('hour', ts), date_trunc('hour', ts) - INTERVAL 1 HOUR]) AS ws FROM log) GROUP BY 1

--expect started
-- s timestamp | c int64
-- 2026-01-31 23:15:00 | 4
-- 2026-02-01 00:15:00 | 2
-- 2026-02-28 11:15:00 | 1
-- 2026-03-29 00:15:00 | 1
-- 2026-03-29 01:15:00 | 1
-- 2026-03-29 22:15:00 | 1

--duckdb started
SELECT time_bucket(INTERVAL '1 hour', ts, TIMESTAMP '2000-01-01 00:15:00') AS s, count(*) AS c FROM log GROUP BY 1

--expect aliased
-- s timestamp | c int64
-- 2026-01-31 00:00:00 | 2
-- 2026-02-01 00:00:00 | 4
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 3

--duckdb aliased
SELECT date_trunc('day', ts) AS s, count(*) AS c FROM log GROUP BY 1

--expect arroyo
-- w struct(start timestamp, end timestamp) | host string | c int64

--expect session
-- s timestamp | c int64
-- 2026-01-31 23:59:58 | 4
-- 2026-02-01 00:59:59 | 2
-- 2026-02-28 12:00:00 | 1
-- 2026-03-29 00:30:00 | 1
-- 2026-03-29 01:30:00 | 1
-- 2026-03-29 23:00:00 | 1
