-- The aggregate behind an exchange may be sub-aggregated; what runs beside it on its site need not be, and a
-- history needs every row.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query heavy
SELECT tb, srcIP, MAX(n) AS n FROM flows GROUP BY tb, srcIP

--query recent
SELECT time, srcIP, AVG(len) OVER (PARTITION BY srcIP ORDER BY time ROWS 9 PRECEDING) AS mean FROM tcp

--before
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp
-- recent@1: history 10 by (srcIP) with flows@1 from tcp
-- heavy@1: aggregate TUMBLE(1 AS tb) by (srcIP) with flows@1 from flows@1
-- flows = flows@1
-- recent = recent@1 select time, srcIP, "AVG(len) OVER" AS mean
-- heavy = heavy@1 select tb, srcIP, "MAX(n)" AS n

--after
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated
-- recent@1: history 10 by (srcIP) with flows@1 from tcp
-- heavy@1: aggregate TUMBLE(1 AS tb) by (srcIP) with flows@1 from flows@1
-- flows = flows@1
-- recent = recent@1 select time, srcIP, "AVG(len) OVER" AS mean
-- heavy = heavy@1 select tb, srcIP, "MAX(n)" AS n
