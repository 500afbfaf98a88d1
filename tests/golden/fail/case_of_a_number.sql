-- CASE WHEN needs conditions.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT CASE WHEN len THEN 1 END AS x FROM tcp

--fail= character 18: CASE needs a condition, but len is int64
