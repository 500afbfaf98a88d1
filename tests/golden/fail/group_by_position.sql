-- Positions are those of the SELECT list.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time/60 AS tb, COUNT(*) AS n FROM tcp GROUP BY 1, 3

--fail= GROUP BY 3: the SELECT list has columns 1 to 2
