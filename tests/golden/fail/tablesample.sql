-- A sample must be the same when an epoch is run again.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp TABLESAMPLE (10 PERCENT)

--fail= TABLESAMPLE is not available: filter with WHERE on bits of a column
