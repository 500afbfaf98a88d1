-- The row before is FIRST over two rows.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT LAG(len) OVER (PARTITION BY srcIP ORDER BY time) AS before FROM tcp

--fail= LAG is not available: FIRST(x) OVER (PARTITION BY key ORDER BY time ROWS 1 PRECEDING)
