-- Of an outer join, WHERE is no condition.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len FROM tcp a LEFT JOIN dns b ON b.at > 3 WHERE a.srcIP = b.srcIP

--fail= to ON, such as
