-- Each input has a name of its own.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len FROM tcp a, dns a WHERE a.srcIP = a.srcIP

--fail= two inputs are called 'a'
