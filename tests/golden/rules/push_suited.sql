-- The stream is partitioned by destIP: that suits the flows and heard; heavy, by srcIP, keeps its exchange.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query heavy
SELECT tb, srcIP, MAX(n) AS n FROM flows GROUP BY tb, srcIP

--query heard
SELECT tb, destIP, MAX(n) AS n FROM flows GROUP BY tb, destIP

--before
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp
-- heard@1: aggregate TUMBLE(1 AS tb) by (destIP) from flows@1
-- heavy@1: aggregate TUMBLE(1 AS tb) by (srcIP) from flows@1
-- flows = flows@1
-- heard = heard@1 select tb, destIP, "MAX(n)" AS n
-- heavy = heavy@1 select tb, srcIP, "MAX(n)" AS n

--after
-- flows@1: aggregate TUMBLE(60 AS tb) by (destIP) from tcp
-- heard@1: aggregate TUMBLE(1 AS tb) by (destIP) with flows@1 from flows@1
-- heavy@1: aggregate TUMBLE(1 AS tb) by (srcIP) from flows@1
-- flows = flows@1
-- heard = heard@1 select tb, destIP, "MAX(n)" AS n
-- heavy = heavy@1 select tb, srcIP, "MAX(n)" AS n
