-- A pattern is a constant.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE name LIKE name

--fail= LIKE needs a constant pattern such as 'a%'
