-- A value from another query is joined, not looked up for every row.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE len > (SELECT AVG(len) FROM tcp)

--fail= a sub-query can be read in FROM only
