-- Nor are those after the first.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp OFFSET 3

--fail= OFFSET has no meaning in an endless stream
