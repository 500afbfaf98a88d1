-- A column for each value is an aggregate for each value.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT * FROM tcp PIVOT (SUM(len) FOR srcIP IN (1, 2))

--fail= PIVOT is not available: write an aggregate with FILTER for each column
