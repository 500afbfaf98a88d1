-- IN takes constants.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE srcIP IN (SELECT destIP FROM tcp)

--fail= character 27: IN (SELECT …) is not available: SEMI JOIN the other query
