-- All OVER clauses of a SELECT are one history.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT SUM(len) OVER (ORDER BY time ROWS 3 PRECEDING) AS a, SUM(len) OVER (ORDER BY time ROWS 4 PRECEDING) AS b FROM tcp

--fail= all OVER clauses of a SELECT must have the same PARTITION BY and ROWS
