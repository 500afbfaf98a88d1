-- What cannot be parsed is told with its place.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len,
FROM WHERE tcp

--fail= cannot be understood near
