-- A filter and a projection below an aggregate, and HAVING with a projection above it, become steps of the paths.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query large
SELECT time, srcIP, len * 8 AS bits FROM tcp WHERE len > 100

--query flows
SELECT tb, srcIP, SUM(bits) AS bits FROM large GROUP BY time/60 AS tb, srcIP HAVING COUNT(*) > 3

--before
-- large@where1: WHERE len > 100 from tcp
-- large@select1: SELECT time, srcIP, len * 8 AS bits from large@where1
-- flows@1: aggregate TUMBLE(60 AS tb) from large@select1
-- flows@where1: WHERE "COUNT(*)" > 3 from flows@1
-- flows@select1: SELECT tb, srcIP, "SUM(bits)" AS bits from flows@where1
-- large = large@select1
-- flows = flows@select1

--after
-- flows@1: aggregate TUMBLE(60 AS tb) from tcp where len > 100 select time, srcIP, len * 8 AS bits
-- large = tcp where len > 100 select time, srcIP, len * 8 AS bits
-- flows = flows@1 where "COUNT(*)" > 3 select tb, srcIP, "SUM(bits)" AS bits
