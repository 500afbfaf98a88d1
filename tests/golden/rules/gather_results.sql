-- In the central form, results that are made on many sites are gathered on one.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time
--set central=true

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query totals
SELECT tb, SUM(n) AS n FROM flows GROUP BY tb

--before
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated
-- totals@1: aggregate TUMBLE(1 AS tb) by () from flows@1, sub-aggregated
-- flows = flows@1
-- totals = totals@1 select tb, "SUM(n)" AS n

--after
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated
-- totals@1: aggregate TUMBLE(1 AS tb) by () from flows@1, sub-aggregated
-- flows@gather: gather by () from flows@1
-- flows = flows@gather
-- totals = totals@1 select tb, "SUM(n)" AS n
