-- A history goes by time, forward.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT SUM(len) OVER (ORDER BY time DESC ROWS 3 PRECEDING) AS s FROM tcp

--fail= OVER needs ORDER BY time, ascending
