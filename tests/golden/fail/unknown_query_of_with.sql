-- A name of WITH is known in its own query only.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM (WITH w AS (SELECT len, time FROM tcp) SELECT len, time FROM w) a JOIN w ON a.time = w.time

--fail= there is no stream or query 'w'
