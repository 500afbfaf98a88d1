-- The rows of heard come by destIP already; its reader needs no exchange of its own.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time
--permit tcp: srcIP

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query heard
SELECT tb, destIP, MAX(n) AS n FROM flows GROUP BY tb, destIP

--query by_hour
SELECT hour, destIP, MAX(n) AS n FROM heard GROUP BY tb/60 AS hour, destIP

--before
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp
-- heard@1: aggregate TUMBLE(1 AS tb) by (destIP) from flows@1
-- by_hour@1: aggregate TUMBLE(60 AS hour) by (destIP) from heard@1 select tb, destIP, "MAX(n)" AS n
-- flows = flows@1
-- heard = heard@1 select tb, destIP, "MAX(n)" AS n
-- by_hour = by_hour@1 select hour, destIP, "MAX(n)" AS n

--after
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp
-- heard@1: aggregate TUMBLE(1 AS tb) by (destIP) from flows@1
-- by_hour@1: aggregate TUMBLE(60 AS hour) by (destIP) with heard@1 from heard@1 select tb, destIP, "MAX(n)" AS n
-- flows = flows@1
-- heard = heard@1 select tb, destIP, "MAX(n)" AS n
-- by_hour = by_hour@1 select hour, destIP, "MAX(n)" AS n
