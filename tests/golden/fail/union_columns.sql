-- The inputs of a union have the same columns.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp UNION ALL SELECT name AS len FROM tcp

--fail= UNION needs inputs with the same columns: 'len' is int64 in the first input and string in input 2
--fail= Write the first input as SELECT CAST(len AS VARCHAR) AS len FROM (…).
