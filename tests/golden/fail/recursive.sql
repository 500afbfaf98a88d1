-- A query cannot read itself.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
WITH RECURSIVE r AS (SELECT len FROM tcp) SELECT len FROM r

--fail= WITH RECURSIVE is not available
