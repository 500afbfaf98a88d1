-- EXCEPT is a left join here.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp EXCEPT SELECT srcIP FROM tcp

--fail= EXCEPT would have to remember every row: LEFT JOIN the other
