-- OVER and GROUP BY in one SELECT would have an order that SQL hides.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT srcIP, SUM(len) OVER (ORDER BY time ROWS 3 PRECEDING) AS s FROM tcp GROUP BY TUMBLE(time, 60), srcIP

--fail= OVER and grouped aggregates cannot meet in one SELECT: use a sub-query
