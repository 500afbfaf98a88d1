-- Distinct rows of an endless stream would have to be remembered for ever.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT DISTINCT len FROM tcp

--fail= SELECT DISTINCT is not available: GROUP BY the columns and a window instead
