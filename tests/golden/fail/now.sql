-- What an epoch computes must be the same when it is run again.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time, NOW() AS t FROM tcp

--fail= NOW is not the same when an epoch is run again: use the ordered attribute
