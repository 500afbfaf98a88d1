-- Days as dates: CAST(ts AS DATE), and numbers of hours.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query days
SELECT CAST(ts AS DATE) AS d, count(*) AS c FROM log GROUP BY CAST(ts AS DATE)

--query short
SELECT ts::DATE AS d, host, min(ms) AS m FROM log GROUP BY 1, 2

--query total
SELECT d, max(c) AS most FROM (SELECT ts::DATE AS d, host, count(*) AS c FROM log GROUP BY 1, 2) GROUP BY d

--query hours
SELECT floor(epoch(ts) / 3600) AS h, count(*) AS c FROM log GROUP BY 1

--query whole_hours
SELECT CAST(epoch(ts) AS BIGINT) // 3600 AS h, count(*) AS c FROM log GROUP BY 1

--plan
-- days@1: aggregate TUMBLE(86400000000 AS d DATE) by () from log, sub-aggregated, level 1
-- hours@1: aggregate TUMBLE(3600000000 AS h FLOAT64) by () from log, sub-aggregated, level 1
-- short@1: aggregate TUMBLE(86400000000 AS d DATE) by (host) from log, sub-aggregated, level 1
-- whole_hours@1: aggregate TUMBLE(3600000000 AS h) by () from log, sub-aggregated, level 1
-- total@1: aggregate TUMBLE(86400000000 AS d DATE) by (host) from log, sub-aggregated, level 1
-- total@2: aggregate TUMBLE(1 AS d) by () from total@1, sub-aggregated, level 2
-- days = days@1
-- hours = hours@1
-- short = short@1
-- whole_hours = whole_hours@1
-- total = total@2

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

--expect days
-- d date | c int64
-- 2026-01-31 | 2
-- 2026-02-01 | 4
-- 2026-02-28 | 1
-- 2026-03-29 | 3

--duckdb days
same

--expect short
-- d date | host string | m float64
-- 2026-01-31 | a | 1.5
-- 2026-01-31 | b | 2.0
-- 2026-02-01 | a | 8.0
-- 2026-02-01 | b | 4.25
-- 2026-02-01 | NULL | 0.5
-- 2026-02-28 | b | 3.0
-- 2026-03-29 | a | 2.5
-- 2026-03-29 | b | 7.0

--duckdb short
same

--expect total
-- d date | most int64
-- 2026-01-31 | 1
-- 2026-02-01 | 2
-- 2026-02-28 | 1
-- 2026-03-29 | 2

--duckdb total
same

--expect hours
-- h float64 | c int64
-- 491639.0 | 2
-- 491640.0 | 3
-- 491641.0 | 1
-- 492300.0 | 1
-- 492984.0 | 1
-- 492985.0 | 1
-- 493007.0 | 1

--duckdb hours
same

--expect whole_hours
-- h int64 | c int64
-- 491639 | 2
-- 491640 | 3
-- 491641 | 1
-- 492300 | 1
-- 492984 | 1
-- 492985 | 1
-- 493007 | 1

--duckdb whole_hours
SELECT CAST(floor(epoch(ts) / 3600) AS BIGINT) AS h, count(*) AS c FROM log GROUP BY 1
