-- Rows are counted in whole numbers.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT SUM(len) OVER (ORDER BY time ROWS 1.5 PRECEDING) AS s FROM tcp

--fail= OVER needs a number of rows: ROWS n PRECEDING
