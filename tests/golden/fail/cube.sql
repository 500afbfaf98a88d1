-- One grouping a query.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT srcIP, COUNT(*) AS n FROM tcp GROUP BY CUBE (srcIP)

--fail= CUBE is not available: write a query for each grouping
