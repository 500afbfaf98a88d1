-- One aggregate over another needs two queries.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, MAX(COUNT(*)) AS n FROM tcp GROUP BY time/60 AS tb

--fail= character 12: MAX of an aggregate: aggregates cannot be nested. Compute the inner one in a sub-query
