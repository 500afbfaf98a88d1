-- A semi-join has no columns of the right.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT a.len, b.host FROM tcp a SEMI JOIN dns b ON a.srcIP = b.srcIP AND a.time = b.at

--fail= 'b.host' is not in the result: SEMI and ANTI JOIN give the columns of the left input alone
