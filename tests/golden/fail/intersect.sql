-- INTERSECT is a join here.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp INTERSECT SELECT srcIP FROM tcp

--fail= INTERSECT would have to remember every row: JOIN the two
