-- UNION without ALL would have to remember every row.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp UNION SELECT srcIP FROM tcp

--fail= UNION would have to remember every row: write UNION ALL
