-- A semi-join of the right is one of the left, exchanged.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT len FROM tcp RIGHT SEMI JOIN dns ON time = at

--fail= RIGHT SEMI JOIN is not available: exchange
