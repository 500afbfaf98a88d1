-- What cannot be computed is told with the types.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT name + 1 AS n FROM tcp WHERE ABS(name) > 1

--fail= cannot be computed from name string
