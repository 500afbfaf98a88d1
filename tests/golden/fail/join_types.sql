-- Keys of a join are of one type, or of numbers that can be compared.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM tcp a JOIN tcp b ON a.srcIP = b.name

--fail= srcIP is int64 and name of 'b' is string; expected one type. Write CAST(a.srcIP AS VARCHAR) = b.name
