-- The first rows of an endless stream are not special.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp LIMIT 3

--fail= LIMIT has no meaning in an endless stream: filter with WHERE or HAVING
