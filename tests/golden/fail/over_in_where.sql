-- A value of OVER can be filtered one level up.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE SUM(len) OVER (ORDER BY time ROWS 3 PRECEDING) > 5

--fail= OVER in WHERE: name the value in a sub-query
