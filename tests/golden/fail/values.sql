-- Rows come from streams.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a FROM (VALUES (1), (2)) AS v(a)

--fail= VALUES is not available: rows come from streams
