-- The best of what was grouped: the item with most bids of each minute.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query hot
SELECT * FROM (SELECT m, item, n, RANK() OVER (PARTITION BY m ORDER BY n DESC) AS r FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item)) WHERE r = 1

--query windows
SELECT window_start, item, s FROM (SELECT window_start, window_end, item, SUM(price) AS s FROM bids GROUP BY HOP(time, 60, 30), item) QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, item) = 1

--query by_end
SELECT window_end, item FROM (SELECT window_start, window_end, item, COUNT(*) AS n FROM bids GROUP BY TUMBLE(time, 60), item) QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, item) = 1

--plan
-- hot@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- windows@1: aggregate HOP(60, 30) by (item) from bids, sub-aggregated, level 1
-- by_end@1: aggregate TUMBLE(60) by (item) from bids, sub-aggregated, level 1
-- hot@2: RANKED 1 BY  ORDER BY n DESC AGG RANK() AS RANK() OVER (PARTITION BY m ORDER BY n DESC) LIMIT RANK <= 1 by () from hot@1, sub-aggregated, level 2
-- windows@2: RANKED 1 BY window_end AS key0 ORDER BY s DESC, item AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, item NULLS LAST) LIMIT ROW_NUMBER <= 1 by (window_end) from windows@1, sub-aggregated, level 2
-- by_end@2: RANKED 1 BY  ORDER BY n DESC, item AGG ROW_NUMBER() AS ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, item NULLS LAST) LIMIT ROW_NUMBER <= 1 by () from by_end@1 select window_start, window_end, item, n, sub-aggregated, level 2
-- hot = hot@2 select m, item, n, "RANK() OVER (PARTITION BY m ORDER BY n DESC)" AS r where r = 1
-- windows = windows@2 where "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, item NULLS LAST)" = 1 select window_start, item, s
-- by_end = by_end@2 where "ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, item NULLS LAST)" = 1 select window_end, item

--input bids
-- time | item | who | price
-- 1 | car | ann | 100
-- 3 | hat | bob | 7
-- 3 | car | bob | 120
-- 9 | car | cid | 120
-- 14 | hat | ann | 9
-- ~
-- 21 | pen | dan | NULL
-- 25 | car | ann | 90
-- 40 | hat | bob | 7
-- 58 | pen | ann | 2
-- ~
-- 61 | car | cid | 200
-- 63 | car | ann | 150
-- 64 | hat | eve | 11
-- 90 | car | eve | 150
-- ~
-- 119 | pen | dan | 3
-- 125 | hat | ann | 5
-- 126 | car | NULL | 10

--expect hot
-- m int64 | item string | n int64 | r int64
-- 0 | car | 4 | 1
-- 1 | car | 3 | 1
-- 2 | car | 1 | 1
-- 2 | hat | 1 | 1

--expect windows
-- window_start int64 | item string | s int64
-- -30 | car | 430
-- 0 | car | 430
-- 30 | car | 350
-- 60 | car | 500
-- 90 | car | 160
-- 120 | car | 10

--expect by_end
-- window_end int64 | item string
-- 60 | car
-- 120 | car
-- 180 | car

--duckdb hot
same

--duckdb windows
SELECT w AS window_start, item, s FROM (SELECT w, item, SUM(price) AS s FROM (SELECT *, unnest([time // 30 * 30, time // 30 * 30 - 30]) AS w FROM bids) GROUP BY w, item) QUALIFY ROW_NUMBER() OVER (PARTITION BY w ORDER BY s DESC, item) = 1

--duckdb by_end
SELECT window_end, item FROM (SELECT time // 60 * 60 + 60 AS window_end, item, COUNT(*) AS n FROM bids GROUP BY ALL) QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, item) = 1
