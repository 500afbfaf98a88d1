-- WHERE needs a condition.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE len

--fail= WHERE len: expected a condition, but this is int64
