-- A column beside aggregates is grouped by, or inside one.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, len, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb

--fail= column 'len' is neither grouped by nor inside an aggregate. GROUP BY has tb
