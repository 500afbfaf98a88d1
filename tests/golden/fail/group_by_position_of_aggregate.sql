-- An aggregate is no key, by its position either.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time/60 AS tb, COUNT(*) AS n FROM tcp GROUP BY 1, 2

--fail= GROUP BY 2: column 2, 'n', is computed from an aggregate
