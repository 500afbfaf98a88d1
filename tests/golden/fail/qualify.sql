-- A filter on a window function belongs around it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp QUALIFY len > 1

--fail= character 29: QUALIFY is not available: name the value in a sub-query
