-- An INTERVAL of no length is one, however it is written.

--stream log: ts timestamp, n int64; ordered by ts

--query q
SELECT ts + INTERVAL '0:00' MINUTE TO SECOND AS a, ts + INTERVAL '00:00:00' AS b, ts + INTERVAL '0.0' SECOND AS c, ts - INTERVAL '0 00:00:00' DAY TO SECOND AS d FROM log

--plan
-- q = log select ts + INTERVAL '0:00:00' AS a, ts + INTERVAL '0:00:00' AS b, ts + INTERVAL '0:00:00' AS c, ts - INTERVAL '0:00:00' AS d

--input log
-- ts | n
-- 2026-01-31 23:59:58 | 1

--expect q
-- a timestamp | b timestamp | c timestamp | d timestamp
-- 2026-01-31 23:59:58 | 2026-01-31 23:59:58 | 2026-01-31 23:59:58 | 2026-01-31 23:59:58

--duckdb q
SELECT ts AS a, ts AS b, ts AS c, ts AS d FROM log
