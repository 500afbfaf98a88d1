-- A wrong name is told with the nearest right one.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tpc

--fail= character 17: there is no stream or query 'tpc'. Did you mean 'tcp'? Existing: tcp.
