-- A sub-query in FROM does not see the inputs beside it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tcp.len FROM tcp, LATERAL (SELECT tcp.len) x

--fail= gives the elements of one list
