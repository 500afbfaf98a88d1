-- Bounded on one side alone, the rows of the other are never done.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len, b.host FROM tcp a JOIN dns b ON a.srcIP = b.srcIP AND b.at >= a.time

--fail= 'q' joins rows however far
