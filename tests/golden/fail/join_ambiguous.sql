-- A column of both inputs is qualified.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp a JOIN tcp b ON a.srcIP = b.srcIP

--fail= character 8: column 'len' is in a and in b: write a.len or b.len
