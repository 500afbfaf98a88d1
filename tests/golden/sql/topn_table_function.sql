-- Top-N of the windows that FROM TUMBLE gives, as Flink writes it, and by date_trunc.

--stream clicks: ts timestamp, page string, ms int64; ordered by ts; lateness 10 seconds

--query rows
SELECT page, ms, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY ms DESC) AS rn FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 2

--query groups
SELECT page, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, page) AS rn FROM (SELECT window_start, window_end, page, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '2' MINUTE)) GROUP BY window_start, window_end, page)) WHERE rn = 1

--query by_minute
SELECT ts, page, ms FROM clicks QUALIFY RANK() OVER (PARTITION BY date_trunc('minute', ts) ORDER BY ms DESC) = 1

--plan
-- by_minute@1: RANKED 1 BY  ORDER BY ms DESC AGG RANK() AS RANK() OVER (PARTITION BY DATE_TRUNC('minute', ts) ORDER BY ms DESC) LIMIT RANK <= 1 by () from clicks select ts, page, ms, DATE_TRUNC('minute', ts) AS DATE_TRUNC('minute', ts) as a window select ts, page, ms, "DATE_TRUNC('minute', ts) as a window" AS DATE_TRUNC('minute', ts) as a window, sub-aggregated, level 1
-- groups@1: aggregate TUMBLE(120000000) by (page) from clicks, sub-aggregated, level 1
-- rows@1: RANKED 1 BY window_end AS key0 ORDER BY ms DESC AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY ms DESC) LIMIT ROW_NUMBER <= 2 by (window_end) from clicks windows TUMBLE(60000000) of ts select ts, page, ms, window_start, window_end, sub-aggregated, level 1
-- groups@2: RANKED 1 BY window_end AS key0 ORDER BY n DESC, page AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, page NULLS LAST) LIMIT ROW_NUMBER <= 1 by (window_end) from groups@1, sub-aggregated, level 2
-- by_minute = by_minute@1 where "RANK() OVER (PARTITION BY DATE_TRUNC('minute', ts) ORDER BY ms DESC)" = 1 select ts, page, ms
-- groups = groups@2 select window_start, window_end, page, n, "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, page NULLS LAST)" AS rn where rn = 1 select page, n
-- rows = rows@1 select ts, page, ms, window_start, window_end, "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY ms DESC)" AS rn where rn <= 2 select page, ms, rn

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

--expect rows
-- page string | ms int64 | rn int64
-- a | 5 | 2
-- a | 30 | 1
-- a | 50 | 1
-- b | 15 | 1
-- b | 20 | 2
-- c | 45 | 2
-- c | 60 | 1

--expect groups
-- page string | n int64
-- a | 1
-- a | 3

--expect by_minute
-- ts timestamp | page string | ms int64
-- 2026-03-01 10:00:05 | a | 30
-- 2026-03-01 10:01:10 | a | 50
-- 2026-03-01 10:02:58 | b | 15
-- 2026-03-01 10:03:01 | c | 60

--duckdb rows
SELECT page, ms, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY date_trunc('minute', ts) ORDER BY ms DESC) AS rn FROM clicks) WHERE rn <= 2

--duckdb groups
SELECT page, n FROM (SELECT time_bucket(INTERVAL 2 MINUTE, ts) AS w, page, COUNT(*) AS n FROM clicks GROUP BY ALL) QUALIFY ROW_NUMBER() OVER (PARTITION BY w ORDER BY n DESC, page) = 1

--duckdb by_minute
same
