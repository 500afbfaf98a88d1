-- OVER needs an aggregate.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT UPPER(name) OVER (ORDER BY time ROWS 3 PRECEDING) AS u FROM tcp

--fail= OVER needs an aggregate, and UPPER is none
