-- Values of different kinds are never equal.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM tcp a JOIN tcp b ON a.srcIP = b.name

--fail= srcIP is Int64 and name of 'b' is String, which are never equal: CAST one of them
