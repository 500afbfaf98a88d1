-- The rows of a group come in several epochs.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time/60 AS tb, COUNT(*) AS n, NOW() AS t FROM tcp GROUP BY time/60

--fail= NOW is the time of the epoch, known in WHERE, and in SELECT without GROUP BY, aggregates and OVER: write it in a query around this one
