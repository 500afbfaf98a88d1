-- time_bucket of DuckDB and TimescaleDB: its origin, an offset, months.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query minutes
SELECT time_bucket(INTERVAL '7 minutes', ts) AS b, count(*) AS c FROM log GROUP BY 1

--query weeks
SELECT time_bucket('1 week', ts) AS b, count(*) AS c FROM log GROUP BY 1

--query months
SELECT time_bucket(INTERVAL '1 month', ts) AS b, count(*) AS c FROM log GROUP BY 1

--query from_an_origin
SELECT time_bucket(INTERVAL '10 minutes', ts, TIMESTAMP '2026-01-01 00:03:00') AS b, count(*) AS c FROM log GROUP BY 1

--query offset
SELECT time_bucket(INTERVAL '1 hour', ts, INTERVAL '5 minutes') AS b, sum(n) AS s FROM log GROUP BY 1

--query binned dialect=postgres
SELECT date_bin(INTERVAL '1 hour', ts, TIMESTAMP '2001-01-01') AS b, sum(n) AS s FROM log GROUP BY 1

--plan
-- binned@1: aggregate TUMBLE(1 AS b) by () from log select ts, n, TIME_BUCKET(INTERVAL '1:00:00', ts, INTERVAL '0:00:00') AS #window select ts, n, #window, sub-aggregated, level 1
-- from_an_origin@1: aggregate TUMBLE(1 AS b) by () from log select ts, TIME_BUCKET(INTERVAL '0:10:00', ts, INTERVAL '0:03:00') AS #window select ts, #window, sub-aggregated, level 1
-- minutes@1: aggregate TUMBLE(1 AS b) by () from log select ts, TIME_BUCKET(INTERVAL '0:07:00', ts, INTERVAL '0:06:00') AS #window select ts, #window, sub-aggregated, level 1
-- months@1: aggregate TUMBLE(1 AS b) by () from log select ts, DATE_TRUNC('month', ts) AS #window select ts, #window, sub-aggregated, level 1
-- offset@1: aggregate TUMBLE(1 AS b) by () from log select ts, n, TIME_BUCKET(INTERVAL '1:00:00', ts, INTERVAL '0:05:00') AS #window select ts, n, #window, sub-aggregated, level 1
-- weeks@1: aggregate TUMBLE(1 AS b) by () from log select ts, TIME_BUCKET(INTERVAL '7 days', ts, INTERVAL '4 days') AS #window select ts, #window, sub-aggregated, level 1
-- binned = binned@1
-- from_an_origin = from_an_origin@1
-- minutes = minutes@1
-- months = months@1
-- offset = offset@1
-- weeks = weeks@1

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

--expect minutes
-- b timestamp | c int64
-- 2026-01-31 23:58:00 | 4
-- 2026-02-01 00:54:00 | 2
-- 2026-02-28 11:57:00 | 1
-- 2026-03-29 00:26:00 | 1
-- 2026-03-29 01:29:00 | 1
-- 2026-03-29 22:57:00 | 1

--duckdb minutes
same

--expect weeks
-- b timestamp | c int64
-- 2026-01-26 00:00:00 | 6
-- 2026-02-23 00:00:00 | 1
-- 2026-03-23 00:00:00 | 3

--duckdb weeks
SELECT time_bucket(INTERVAL '1 week', ts) AS b, count(*) AS c FROM log GROUP BY 1

--expect months
-- b timestamp | c int64
-- 2026-01-01 00:00:00 | 2
-- 2026-02-01 00:00:00 | 5
-- 2026-03-01 00:00:00 | 3

--duckdb months
same

--expect from_an_origin
-- b timestamp | c int64
-- 2026-01-31 23:53:00 | 4
-- 2026-02-01 00:53:00 | 2
-- 2026-02-28 11:53:00 | 1
-- 2026-03-29 00:23:00 | 1
-- 2026-03-29 01:23:00 | 1
-- 2026-03-29 22:53:00 | 1

--duckdb from_an_origin
same

--expect offset
-- b timestamp | s int64
-- 2026-01-31 23:05:00 | 10
-- 2026-02-01 00:05:00 | 11
-- 2026-02-28 11:05:00 | 7
-- 2026-03-29 00:05:00 | 8
-- 2026-03-29 01:05:00 | 9
-- 2026-03-29 22:05:00 | 10

--duckdb offset
same

--expect binned
-- b timestamp | s int64
-- 2026-01-31 23:00:00 | 3
-- 2026-02-01 00:00:00 | 12
-- 2026-02-01 01:00:00 | 6
-- 2026-02-28 12:00:00 | 7
-- 2026-03-29 00:00:00 | 8
-- 2026-03-29 01:00:00 | 9
-- 2026-03-29 23:00:00 | 10

--duckdb binned
SELECT time_bucket(INTERVAL '1 hour', ts, TIMESTAMP '2001-01-01') AS b, sum(n) AS s FROM log GROUP BY 1
