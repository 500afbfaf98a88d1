-- A sub-query does not see the query around it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT s.len FROM tcp t JOIN (SELECT len, time FROM tcp WHERE len = t.len) s ON s.time = t.time

--fail= character 69: there is no input 't' here. Existing: tcp.
--fail= a sub-query does not see the inputs of the query around it
