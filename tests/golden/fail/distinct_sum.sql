-- Only COUNT takes DISTINCT.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, SUM(DISTINCT len) AS s FROM tcp GROUP BY time/60 AS tb

--fail= DISTINCT is available in COUNT only, not in SUM
