-- An endless stream has no order but time's.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp
ORDER BY len

--fail= line 2, character 10: ORDER BY has no meaning in an endless stream: order the rows where you read them
