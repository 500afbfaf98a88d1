-- Nor has an anti-join, without a qualifier.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT len, host FROM tcp ANTI JOIN dns ON tcp.srcIP = dns.srcIP AND time = at

--fail= column 'host' is not found
