-- Sinks are given to the run.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len INTO x FROM tcp

--fail= SELECT INTO is not available: the sink of a query is given to session.start(sinks=…)
