-- Two inputs that nothing connects.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len FROM tcp a, dns b WHERE a.len > 3

--fail= nothing says which rows of 'b' belong to which of 'a'
