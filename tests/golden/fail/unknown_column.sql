-- A wrong name is told with the nearest right one.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time,
       lenn FROM tcp

--fail= line 2, character 8: column 'lenn' is not found. Did you mean 'len'? Existing: destIP, len, name, srcIP, time.
