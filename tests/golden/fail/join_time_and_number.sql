-- A time is no number.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len FROM tcp a JOIN dns b ON a.srcIP = b.srcIP AND a.time = b.ts

--fail= time is int64 and ts of 'b' is timestamp
