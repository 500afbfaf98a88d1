-- Parts of a time by EXTRACT, DATE_PART and functions; Sunday is day 0.

--stream log: ts timestamp, host string, ms float64, ok boolean; ordered by ts

--query q
SELECT ts, EXTRACT(year FROM ts) AS y, MONTH(ts) AS m, DAY(ts) AS d, EXTRACT(DOW FROM ts) AS dow,
       DATE_PART('hour', ts) AS h, MINUTE(ts) AS mi, SECOND(ts) AS s, EXTRACT(doy FROM ts) AS doy,
       WEEK(ts) AS w, QUARTER(ts) AS q, EPOCH(ts) AS e
FROM log

--plan
-- q = log select ts, YEAR(ts) AS y, MONTH(ts) AS m, DAY(ts) AS d, DOW(ts) AS dow, HOUR(ts) AS h, MINUTE(ts) AS mi, SECOND(ts) AS s, DOY(ts) AS doy, WEEK(ts) AS w, QUARTER(ts) AS q, EPOCH(ts) AS e

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
-- ts timestamp | y int64 | m int64 | d int64 | dow int64 | h int64 | mi int64 | s int64 | doy int64 | w int64 | q int64 | e float64
-- 2026-03-01 23:59:10 | 2026 | 3 | 1 | 0 | 23 | 59 | 10 | 60 | 9 | 1 | 1772409550.0
-- 2026-03-01 23:59:50 | 2026 | 3 | 1 | 0 | 23 | 59 | 50 | 60 | 9 | 1 | 1772409590.0
-- 2026-03-02 00:00:05 | 2026 | 3 | 2 | 1 | 0 | 0 | 5 | 61 | 10 | 1 | 1772409605.0
-- 2026-03-02 00:00:40 | 2026 | 3 | 2 | 1 | 0 | 0 | 40 | 61 | 10 | 1 | 1772409640.0
-- 2026-03-02 00:01:00 | 2026 | 3 | 2 | 1 | 0 | 1 | 0 | 61 | 10 | 1 | 1772409660.0
-- 2026-03-02 00:03:30 | 2026 | 3 | 2 | 1 | 0 | 3 | 30 | 61 | 10 | 1 | 1772409810.0
-- 2026-03-02 00:03:31 | 2026 | 3 | 2 | 1 | 0 | 3 | 31 | 61 | 10 | 1 | 1772409811.0

--duckdb q
same
