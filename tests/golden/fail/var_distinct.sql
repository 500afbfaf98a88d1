-- DISTINCT has a meaning in some aggregates.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT stddev(DISTINCT len) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= DISTINCT is available in COUNT, SUM, AVG and ARRAY_AGG, not in STDDEV.
