-- Differences and parts of times under the names of other systems.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query diffs
SELECT date_diff('day', TIMESTAMP '2026-01-31', ts) AS a, date_diff('hour', TIMESTAMP '2026-01-31', ts) AS b, date_diff('month', TIMESTAMP '2025-12-31', ts) AS c, date_diff('week', TIMESTAMP '2026-01-31', ts) AS d FROM log

--query days dialect=spark
SELECT datediff(ts, TIMESTAMP '2026-01-01') AS a, date_add(CAST(ts AS DATE), 3) AS b, date_sub(CAST(ts AS DATE), 1) AS c, last_day(ts) AS d FROM log

--query weekdays
SELECT dayofweek(ts) AS a, isodow(ts) AS b, dayname(ts) AS c, monthname(ts) AS d FROM log

--query sundays dialect=spark
SELECT dayofweek(ts) AS a, weekday(ts) AS b FROM log

--query parts
SELECT EXTRACT(isodow FROM ts) AS a, EXTRACT(MILLISECOND FROM ts) AS b, date_part('isoyear', ts) AS c FROM log

--plan
-- days = log select ((EPOCH_US(ts) + 0) // 86400000000) - ((EPOCH_US(TIMESTAMP '2026-01-01 00:00:00') + 0) // 86400000000) AS a, DATE_ADD(CAST(CAST(ts AS date) AS date), 1 * 3) AS b, DATE_ADD(CAST(CAST(ts AS date) AS date), -1 * 1) AS c, LAST_DAY(ts) AS d
-- diffs = log select ((EPOCH_US(ts) + 0) // 86400000000) - ((EPOCH_US(TIMESTAMP '2026-01-31 00:00:00') + 0) // 86400000000) AS a, ((EPOCH_US(ts) + 0) // 3600000000) - ((EPOCH_US(TIMESTAMP '2026-01-31 00:00:00') + 0) // 3600000000) AS b, ((((YEAR(ts) * 12) + MONTH(ts)) - 1) // 1) - ((((YEAR(TIMESTAMP '2025-12-31 00:00:00') * 12) + MONTH(TIMESTAMP '2025-12-31 00:00:00')) - 1) // 1) AS c, ((EPOCH_US(ts) + 259200000000) // 604800000000) - ((EPOCH_US(TIMESTAMP '2026-01-31 00:00:00') + 259200000000) // 604800000000) AS d
-- parts = log select ISODOW(ts) AS a, MILLISECOND(ts) AS b, ISOYEAR(ts) AS c
-- sundays = log select DOW(ts) + 1 AS a, ISODOW(ts) - 1 AS b
-- weekdays = log select DOW(ts) AS a, ISODOW(ts) AS b, DAYNAME(ts) AS c, MONTHNAME(ts) AS d

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

--expect diffs
-- a int64 | b int64 | c int64 | d int64
-- 0 | 23 | 1 | 0
-- 0 | 23 | 1 | 0
-- 1 | 24 | 2 | 0
-- 1 | 24 | 2 | 0
-- 1 | 24 | 2 | 0
-- 1 | 25 | 2 | 0
-- 28 | 684 | 2 | 4
-- 57 | 1368 | 3 | 8
-- 57 | 1369 | 3 | 8
-- 57 | 1391 | 3 | 8

--duckdb diffs
same

--expect days
-- a int64 | b date | c date | d date
-- 30 | 2026-02-03 | 2026-01-30 | 2026-01-31
-- 30 | 2026-02-03 | 2026-01-30 | 2026-01-31
-- 31 | 2026-02-04 | 2026-01-31 | 2026-02-28
-- 31 | 2026-02-04 | 2026-01-31 | 2026-02-28
-- 31 | 2026-02-04 | 2026-01-31 | 2026-02-28
-- 31 | 2026-02-04 | 2026-01-31 | 2026-02-28
-- 58 | 2026-03-03 | 2026-02-27 | 2026-02-28
-- 87 | 2026-04-01 | 2026-03-28 | 2026-03-31
-- 87 | 2026-04-01 | 2026-03-28 | 2026-03-31
-- 87 | 2026-04-01 | 2026-03-28 | 2026-03-31

--duckdb days
SELECT date_diff('day', TIMESTAMP '2026-01-01', ts) AS a, CAST(ts AS DATE) + 3 AS b, CAST(ts AS DATE) - 1 AS c, last_day(ts) AS d FROM log

--expect weekdays
-- a int64 | b int64 | c string | d string
-- 0 | 7 | Sunday | February
-- 0 | 7 | Sunday | February
-- 0 | 7 | Sunday | February
-- 0 | 7 | Sunday | February
-- 0 | 7 | Sunday | March
-- 0 | 7 | Sunday | March
-- 0 | 7 | Sunday | March
-- 6 | 6 | Saturday | February
-- 6 | 6 | Saturday | January
-- 6 | 6 | Saturday | January

--duckdb weekdays
SELECT dayofweek(ts) AS a, isodow(ts) AS b, dayname(ts) AS c, monthname(ts) AS d FROM log

--expect sundays
-- a int64 | b int64
-- 1 | 6
-- 1 | 6
-- 1 | 6
-- 1 | 6
-- 1 | 6
-- 1 | 6
-- 1 | 6
-- 7 | 5
-- 7 | 5
-- 7 | 5

--duckdb sundays
SELECT dayofweek(ts) + 1 AS a, isodow(ts) - 1 AS b FROM log

--expect parts
-- a int64 | b int64 | c int64
-- 6 | 0 | 2026
-- 6 | 58000 | 2026
-- 6 | 59500 | 2026
-- 7 | 0 | 2026
-- 7 | 0 | 2026
-- 7 | 0 | 2026
-- 7 | 0 | 2026
-- 7 | 0 | 2026
-- 7 | 7000 | 2026
-- 7 | 59000 | 2026

--duckdb parts
same
