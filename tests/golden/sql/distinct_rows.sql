-- DISTINCT with the time or a window of it: what was there is known when that has passed.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query minutes
SELECT DISTINCT time // 60 AS m, item FROM bids

--query times
SELECT DISTINCT item, time FROM bids

--query of_groups
SELECT DISTINCT m, n FROM (SELECT time // 60 AS m, item, COUNT(*) AS n FROM bids GROUP BY time // 60, item)

--plan
-- minutes@1: aggregate TUMBLE(1 AS m) by (item) from bids select time // 60 AS m, item, sub-aggregated, level 1
-- of_groups@1: aggregate TUMBLE(60 AS m) by (item) from bids, sub-aggregated, level 1
-- times@1: aggregate TUMBLE(1 AS time) by (item) from bids select item, time, sub-aggregated, level 1
-- of_groups@2: aggregate TUMBLE(1 AS m) by (n) from of_groups@1 select m, n, sub-aggregated, level 2
-- minutes = minutes@1
-- of_groups = of_groups@2
-- times = times@1 select item, time

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

--expect minutes
-- m int64 | item string
-- 0 | car
-- 0 | hat
-- 0 | pen
-- 1 | car
-- 1 | hat
-- 1 | pen
-- 2 | car
-- 2 | hat

--expect times
-- item string | time int64
-- car | 1
-- car | 3
-- car | 9
-- car | 25
-- car | 61
-- car | 63
-- car | 90
-- car | 126
-- hat | 3
-- hat | 14
-- hat | 40
-- hat | 64
-- hat | 125
-- pen | 21
-- pen | 58
-- pen | 119

--expect of_groups
-- m int64 | n int64
-- 0 | 2
-- 0 | 3
-- 0 | 4
-- 1 | 1
-- 1 | 3
-- 2 | 1

--duckdb minutes
same

--duckdb times
same

--duckdb of_groups
same
