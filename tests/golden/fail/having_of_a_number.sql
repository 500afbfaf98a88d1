-- HAVING needs a condition.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb HAVING n

--fail= HAVING needs a condition, but n is int64
