-- USING names columns of both inputs.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT len FROM tcp JOIN dns USING (time)

--fail= USING: 'dns' has no column 'time'
