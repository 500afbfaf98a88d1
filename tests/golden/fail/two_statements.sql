-- Each query is registered for itself.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp; SELECT time FROM tcp

--fail= there is more than one statement: register each as a query of its own
