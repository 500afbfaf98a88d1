-- Different pairs are counted as different texts.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, COUNT(DISTINCT srcIP, destIP) AS n FROM tcp GROUP BY time/60 AS tb

--fail= COUNT(DISTINCT …) takes one value: count a text of all of them
