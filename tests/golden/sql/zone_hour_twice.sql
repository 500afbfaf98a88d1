-- A local time that a zone has twice, in the night when clocks go back, is the later moment of the two.

--stream log: ts timestamp, n int64; ordered by ts

--query moments
SELECT n, ts AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'UTC' AS utc FROM log

--query compared
SELECT n FROM log WHERE ts AT TIME ZONE 'Europe/Berlin' = TIMESTAMP '2026-10-25 01:30:00' AT TIME ZONE 'UTC'

--plan
-- moments = log select n, ts AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'UTC' AS utc
-- compared = log where ts AT TIME ZONE 'Europe/Berlin' = TIMESTAMP '2026-10-25 01:30:00' AT TIME ZONE 'UTC' select n

--input log
-- ts | n
-- 2026-03-29 02:30:00 | 1
-- 2026-10-25 01:59:59 | 2
-- 2026-10-25 02:00:00 | 3
-- ~
-- 2026-10-25 02:30:00 | 4
-- 2026-10-25 03:00:00 | 5

--expect moments
-- n int64 | utc timestamp
-- 1 | 2026-03-29 01:30:00
-- 2 | 2026-10-24 23:59:59
-- 3 | 2026-10-25 01:00:00
-- 4 | 2026-10-25 01:30:00
-- 5 | 2026-10-25 02:00:00

--expect compared
-- n int64
-- 4

--duckdb moments
same

--duckdb compared
same
