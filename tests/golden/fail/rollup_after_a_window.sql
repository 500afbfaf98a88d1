-- ROLLUP beside a window.

--stream tcp: time int64, len int64, name string; ordered by time

--query q
SELECT time // 60 AS m, name, SUM(len) AS s FROM tcp GROUP BY time // 60, ROLLUP(name, len)

--fail= ROLLUP and CUBE are not available: write a query for each grouping
