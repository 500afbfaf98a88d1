-- INTERVAL in all its spellings, wherever a length is wanted.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query added
SELECT ts + INTERVAL '1' DAY AS a, ts + INTERVAL 90 MINUTES AS b, ts + INTERVAL '1 day 2 hours' AS c, ts - INTERVAL '1' SECOND AS d FROM log

--query clock
SELECT ts + INTERVAL '01:30:00' AS a, ts + INTERVAL '1:30' MINUTE TO SECOND AS b, ts + INTERVAL '1.5' SECOND AS c, ts + INTERVAL '-2 hours' AS d FROM log

--query months
SELECT ts + INTERVAL '1' MONTH AS a, ts - INTERVAL '2 years' AS b, ts + INTERVAL 1 QUARTER AS c FROM log

--query windows
SELECT window_start, count(*) AS c FROM log GROUP BY TUMBLE(ts, INTERVAL '24:00:00')

--plan
-- windows@1: aggregate TUMBLE(86400000000) by () from log, sub-aggregated, level 1
-- added = log select ts + INTERVAL '1 day' AS a, ts + INTERVAL '1:30:00' AS b, ts + INTERVAL '1 day 2:00:00' AS c, ts - INTERVAL '0:00:01' AS d
-- clock = log select ts + INTERVAL '1:30:00' AS a, ts + INTERVAL '0:01:30' AS b, ts + INTERVAL '0:00:01.500000' AS c, ts + INTERVAL '-7200000000 microseconds' AS d
-- months = log select ADD_MONTHS(ts, 1) AS a, ADD_MONTHS(ts, -24) AS b, ADD_MONTHS(ts, 3) AS c
-- windows = windows@1 select window_start, c

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

--expect added
-- a timestamp | b timestamp | c timestamp | d timestamp
-- 2026-02-01 23:59:58 | 2026-02-01 01:29:58 | 2026-02-02 01:59:58 | 2026-01-31 23:59:57
-- 2026-02-01 23:59:59.500000 | 2026-02-01 01:29:59.500000 | 2026-02-02 01:59:59.500000 | 2026-01-31 23:59:58.500000
-- 2026-02-02 00:00:00 | 2026-02-01 01:30:00 | 2026-02-02 02:00:00 | 2026-01-31 23:59:59
-- 2026-02-02 00:00:07 | 2026-02-01 01:30:07 | 2026-02-02 02:00:07 | 2026-02-01 00:00:06
-- 2026-02-02 00:59:59 | 2026-02-01 02:29:59 | 2026-02-02 02:59:59 | 2026-02-01 00:59:58
-- 2026-02-02 01:00:00 | 2026-02-01 02:30:00 | 2026-02-02 03:00:00 | 2026-02-01 00:59:59
-- 2026-03-01 12:00:00 | 2026-02-28 13:30:00 | 2026-03-01 14:00:00 | 2026-02-28 11:59:59
-- 2026-03-30 00:30:00 | 2026-03-29 02:00:00 | 2026-03-30 02:30:00 | 2026-03-29 00:29:59
-- 2026-03-30 01:30:00 | 2026-03-29 03:00:00 | 2026-03-30 03:30:00 | 2026-03-29 01:29:59
-- 2026-03-30 23:00:00 | 2026-03-30 00:30:00 | 2026-03-31 01:00:00 | 2026-03-29 22:59:59

--duckdb added
SELECT ts + INTERVAL 1 DAY AS a, ts + INTERVAL 90 MINUTE AS b, ts + INTERVAL '1 day 2 hours' AS c, ts - INTERVAL 1 SECOND AS d FROM log

--expect clock
-- a timestamp | b timestamp | c timestamp | d timestamp
-- 2026-02-01 01:29:58 | 2026-02-01 00:01:28 | 2026-01-31 23:59:59.500000 | 2026-01-31 21:59:58
-- 2026-02-01 01:29:59.500000 | 2026-02-01 00:01:29.500000 | 2026-02-01 00:00:01 | 2026-01-31 21:59:59.500000
-- 2026-02-01 01:30:00 | 2026-02-01 00:01:30 | 2026-02-01 00:00:01.500000 | 2026-01-31 22:00:00
-- 2026-02-01 01:30:07 | 2026-02-01 00:01:37 | 2026-02-01 00:00:08.500000 | 2026-01-31 22:00:07
-- 2026-02-01 02:29:59 | 2026-02-01 01:01:29 | 2026-02-01 01:00:00.500000 | 2026-01-31 22:59:59
-- 2026-02-01 02:30:00 | 2026-02-01 01:01:30 | 2026-02-01 01:00:01.500000 | 2026-01-31 23:00:00
-- 2026-02-28 13:30:00 | 2026-02-28 12:01:30 | 2026-02-28 12:00:01.500000 | 2026-02-28 10:00:00
-- 2026-03-29 02:00:00 | 2026-03-29 00:31:30 | 2026-03-29 00:30:01.500000 | 2026-03-28 22:30:00
-- 2026-03-29 03:00:00 | 2026-03-29 01:31:30 | 2026-03-29 01:30:01.500000 | 2026-03-28 23:30:00
-- 2026-03-30 00:30:00 | 2026-03-29 23:01:30 | 2026-03-29 23:00:01.500000 | 2026-03-29 21:00:00

--duckdb clock
SELECT ts + INTERVAL '01:30:00' AS a, ts + INTERVAL 90 SECOND AS b, ts + INTERVAL '1.5 seconds' AS c, ts + INTERVAL '-2 hours' AS d FROM log

--expect months
-- a timestamp | b timestamp | c timestamp
-- 2026-02-28 23:59:58 | 2024-01-31 23:59:58 | 2026-04-30 23:59:58
-- 2026-02-28 23:59:59.500000 | 2024-01-31 23:59:59.500000 | 2026-04-30 23:59:59.500000
-- 2026-03-01 00:00:00 | 2024-02-01 00:00:00 | 2026-05-01 00:00:00
-- 2026-03-01 00:00:07 | 2024-02-01 00:00:07 | 2026-05-01 00:00:07
-- 2026-03-01 00:59:59 | 2024-02-01 00:59:59 | 2026-05-01 00:59:59
-- 2026-03-01 01:00:00 | 2024-02-01 01:00:00 | 2026-05-01 01:00:00
-- 2026-03-28 12:00:00 | 2024-02-28 12:00:00 | 2026-05-28 12:00:00
-- 2026-04-29 00:30:00 | 2024-03-29 00:30:00 | 2026-06-29 00:30:00
-- 2026-04-29 01:30:00 | 2024-03-29 01:30:00 | 2026-06-29 01:30:00
-- 2026-04-29 23:00:00 | 2024-03-29 23:00:00 | 2026-06-29 23:00:00

--duckdb months
SELECT ts + INTERVAL 1 MONTH AS a, ts - INTERVAL 2 YEAR AS b, ts + INTERVAL 3 MONTH AS c FROM log

--expect windows
-- window_start timestamp | c int64
-- 2026-01-31 00:00:00 | 2
-- 2026-02-01 00:00:00 | 4
-- 2026-02-28 00:00:00 | 1
-- 2026-03-29 00:00:00 | 3

--duckdb windows
SELECT date_trunc('day', ts) AS window_start, count(*) AS c FROM log GROUP BY 1
