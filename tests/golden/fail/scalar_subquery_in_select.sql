-- The same in the SELECT list.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT time, (SELECT MAX(len) FROM tcp) AS m FROM tcp

--fail= needs an equality with the rows around it
