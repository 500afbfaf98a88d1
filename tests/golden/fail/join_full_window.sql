-- After a full join either time may be NULL, so there is none to group by.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time
--stream dns: at int64, srcIP int64, host string, ts timestamp; ordered by at

--query q
SELECT tb, COUNT(*) AS n FROM tcp a FULL JOIN dns b ON a.srcIP = b.srcIP AND a.time = b.at GROUP BY a.time/60 AS tb

--fail= ordered attribute
