-- Times as texts and back, in strftime's, Java's and PostgreSQL's formats.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query strftime
SELECT strftime(ts, '%Y-%m-%d %H:%M:%S.%f') AS a, strftime(ts, '%d.%m.%y %I %p %j') AS b FROM log

--query java dialect=spark
SELECT date_format(ts, 'yyyy/MM/dd HH:mm:ss') AS a, date_format(ts, 'EEE d MMM') AS b FROM log

--query postgres dialect=postgres
SELECT to_char(ts, 'YYYY-MM-DD HH24:MI:SS') AS a, to_char(ts, 'HH12 AM') AS b FROM log

--query read
SELECT strptime('2026-02-03 04:05:06', '%Y-%m-%d %H:%M:%S') AS a, to_timestamp('03/02/2026', 'dd/MM/yyyy') AS b, to_date('2026-02-03', 'YYYY-MM-DD') AS c FROM log WHERE n = 1

--query epochs
SELECT to_timestamp(n) AS a, epoch_ms(ts) AS b, unix_timestamp(ts) AS c, from_unixtime(n) AS d FROM log

--plan
-- epochs = log select FROM_EPOCH(n) AS a, EPOCH_MS(ts) AS b, EPOCH_US(ts) // 1000000 AS c, STRFTIME(FROM_EPOCH(n), '%Y-%m-%d %H:%M:%S') AS d
-- java = log select STRFTIME(ts, '%Y/%m/%d %H:%M:%S') AS a, STRFTIME(ts, '%a %-d %b') AS b
-- postgres = log select STRFTIME(ts, '%Y-%m-%d %H:%M:%S') AS a, STRFTIME(ts, '%I %p') AS b
-- strftime = log select STRFTIME(ts, '%Y-%m-%d %H:%M:%S.%6f') AS a, STRFTIME(ts, '%d.%m.%y %I %p %j') AS b
-- read = log where n = 1 select STRPTIME('2026-02-03 04:05:06', '%Y-%m-%d %H:%M:%S') AS a, STRPTIME('03/02/2026', '%d/%m/%Y') AS b, TO_DATE('2026-02-03', '%Y-%m-%d') AS c

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

--expect strftime
-- a string | b string
-- 2026-01-31 23:59:58.000000 | 31.01.26 11 PM 031
-- 2026-01-31 23:59:59.500000 | 31.01.26 11 PM 031
-- 2026-02-01 00:00:00.000000 | 01.02.26 12 AM 032
-- 2026-02-01 00:00:07.000000 | 01.02.26 12 AM 032
-- 2026-02-01 00:59:59.000000 | 01.02.26 12 AM 032
-- 2026-02-01 01:00:00.000000 | 01.02.26 01 AM 032
-- 2026-02-28 12:00:00.000000 | 28.02.26 12 PM 059
-- 2026-03-29 00:30:00.000000 | 29.03.26 12 AM 088
-- 2026-03-29 01:30:00.000000 | 29.03.26 01 AM 088
-- 2026-03-29 23:00:00.000000 | 29.03.26 11 PM 088

--duckdb strftime
same

--expect java
-- a string | b string
-- 2026/01/31 23:59:58 | Sat 31 Jan
-- 2026/01/31 23:59:59 | Sat 31 Jan
-- 2026/02/01 00:00:00 | Sun 1 Feb
-- 2026/02/01 00:00:07 | Sun 1 Feb
-- 2026/02/01 00:59:59 | Sun 1 Feb
-- 2026/02/01 01:00:00 | Sun 1 Feb
-- 2026/02/28 12:00:00 | Sat 28 Feb
-- 2026/03/29 00:30:00 | Sun 29 Mar
-- 2026/03/29 01:30:00 | Sun 29 Mar
-- 2026/03/29 23:00:00 | Sun 29 Mar

--duckdb java
SELECT strftime(ts, '%Y/%m/%d %H:%M:%S') AS a, strftime(ts, '%a %-d %b') AS b FROM log

--expect postgres
-- a string | b string
-- 2026-01-31 23:59:58 | 11 PM
-- 2026-01-31 23:59:59 | 11 PM
-- 2026-02-01 00:00:00 | 12 AM
-- 2026-02-01 00:00:07 | 12 AM
-- 2026-02-01 00:59:59 | 12 AM
-- 2026-02-01 01:00:00 | 01 AM
-- 2026-02-28 12:00:00 | 12 PM
-- 2026-03-29 00:30:00 | 12 AM
-- 2026-03-29 01:30:00 | 01 AM
-- 2026-03-29 23:00:00 | 11 PM

--duckdb postgres
SELECT strftime(ts, '%Y-%m-%d %H:%M:%S') AS a, strftime(ts, '%I %p') AS b FROM log

--expect read
-- a timestamp | b timestamp | c date
-- 2026-02-03 04:05:06 | 2026-02-03 00:00:00 | 2026-02-03

--duckdb read
SELECT TIMESTAMP '2026-02-03 04:05:06' AS a, TIMESTAMP '2026-02-03' AS b, DATE '2026-02-03' AS c

--expect epochs
-- a timestamp | b int64 | c int64 | d string
-- 1970-01-01 00:00:01 | 1769903998000 | 1769903998 | 1970-01-01 00:00:01
-- 1970-01-01 00:00:02 | 1769903999500 | 1769903999 | 1970-01-01 00:00:02
-- 1970-01-01 00:00:03 | 1769904000000 | 1769904000 | 1970-01-01 00:00:03
-- 1970-01-01 00:00:04 | 1769904007000 | 1769904007 | 1970-01-01 00:00:04
-- 1970-01-01 00:00:05 | 1769907599000 | 1769907599 | 1970-01-01 00:00:05
-- 1970-01-01 00:00:06 | 1769907600000 | 1769907600 | 1970-01-01 00:00:06
-- 1970-01-01 00:00:07 | 1772280000000 | 1772280000 | 1970-01-01 00:00:07
-- 1970-01-01 00:00:08 | 1774744200000 | 1774744200 | 1970-01-01 00:00:08
-- 1970-01-01 00:00:09 | 1774747800000 | 1774747800 | 1970-01-01 00:00:09
-- 1970-01-01 00:00:10 | 1774825200000 | 1774825200 | 1970-01-01 00:00:10

--duckdb epochs
SELECT make_timestamp(n * 1000000) AS a, epoch_ms(ts) AS b, CAST(floor(epoch(ts)) AS BIGINT) AS c, strftime(make_timestamp(n * 1000000), '%Y-%m-%d %H:%M:%S') AS d FROM log
