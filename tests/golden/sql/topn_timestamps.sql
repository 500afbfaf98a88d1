-- Windows of timestamps in PARTITION BY, with late rows that still count.

--stream clicks: ts timestamp, page string, ms int64; ordered by ts; lateness 10 seconds

--query slow
SELECT ts, page, ms FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY ms DESC) <= 2

--plan
-- slow@1: RANKED 60000000 BY  ORDER BY ms DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY ms DESC) LIMIT ROW_NUMBER <= 2 by () from clicks, sub-aggregated, level 1
-- slow = slow@1 where "ROW_NUMBER() OVER (PARTITION BY TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY ms DESC)" <= 2 select ts, page, ms

--input clicks
-- ts | page | ms
-- 2026-03-01 10:00:05 | a | 30
-- 2026-03-01 10:00:02 | b | 20
-- 2026-03-01 10:00:30 | a | 10
-- ~
-- 2026-03-01 10:01:10 | a | 50
-- 2026-03-01 10:01:05 | c | 45
-- 2026-03-01 10:01:40 | b | NULL
-- ~
-- 2026-03-01 10:03:00 | a | 5
-- 2026-03-01 10:03:01 | c | 60
-- 2026-03-01 10:02:58 | b | 15

--expect slow
-- ts timestamp | page string | ms int64
-- 2026-03-01 10:00:02 | b | 20
-- 2026-03-01 10:00:05 | a | 30
-- 2026-03-01 10:01:05 | c | 45
-- 2026-03-01 10:01:10 | a | 50
-- 2026-03-01 10:02:58 | b | 15
-- 2026-03-01 10:03:00 | a | 5
-- 2026-03-01 10:03:01 | c | 60

--duckdb slow
SELECT ts, page, ms FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY date_trunc('minute', ts) ORDER BY ms DESC) <= 2
