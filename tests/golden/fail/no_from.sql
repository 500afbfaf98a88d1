-- Rows come from somewhere.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT 1 AS one

--fail= FROM is missing: name a stream or a query
