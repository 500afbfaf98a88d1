-- Rows of an endless stream are not numbered.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT ROW_NUMBER() OVER (PARTITION BY srcIP ORDER BY time) AS n FROM tcp

--fail= ROW_NUMBER is not available: it would number rows for ever
--fail= GROUP BY COUNT_WINDOW(n)
