-- Names that begin with two underscores are the engine's.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len AS __len FROM tcp

--fail= '__len' is not a name for a column: `__` is reserved
