-- Columns that happen to have the same name are not joined on.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT * FROM tcp NATURAL JOIN tcp AS b

--fail= NATURAL JOIN is not available: name the columns with USING
