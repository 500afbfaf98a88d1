-- EXISTS is a join here.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp t WHERE EXISTS (SELECT 1 FROM tcp u WHERE u.srcIP = t.srcIP)

--fail= EXISTS is not available: SEMI JOIN the other input
