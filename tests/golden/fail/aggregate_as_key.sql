-- An aggregate is no key.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, MAX(len)

--fail= GROUP BY of an aggregate: compute it in a sub-query and group by its name
