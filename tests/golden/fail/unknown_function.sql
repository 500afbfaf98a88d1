-- A wrong name is told with the nearest right one.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT uper(name) AS u FROM tcp

--fail= character 8: there is no function 'uper'. Did you mean 'upper'?
