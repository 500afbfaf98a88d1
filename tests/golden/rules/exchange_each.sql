-- Every stateful operator gets an exchange by its keys; where there is only the window, by that.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query totals
SELECT tb, SUM(n) AS n FROM flows GROUP BY tb

--before
-- flows@1: aggregate TUMBLE(60 AS tb) from tcp
-- totals@1: aggregate TUMBLE(1 AS tb) from flows@1
-- flows = flows@1
-- totals = totals@1 select tb, "SUM(n)" AS n

--after
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp
-- totals@1: aggregate TUMBLE(1 AS tb) by () from flows@1
-- flows = flows@1
-- totals = totals@1 select tb, "SUM(n)" AS n
