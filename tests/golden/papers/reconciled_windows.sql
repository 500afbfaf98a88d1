-- Query-aware partitioning, section 4.1: the mask is what both can be partitioned by. Their windows would
-- reconcile to time/180, but temporal attributes are left out of a partitioning (section 3.5.1).

--stream tcp: time int64, srcIP int64, destIP int64, srcPort int64, destPort int64, len int64, flags int64, seq int64; ordered by time

--query pairs
SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM tcp GROUP BY time/60 AS tb, srcIP, destIP

--query nets
SELECT tb, net, COUNT(*) AS cnt FROM tcp GROUP BY time/90 AS tb, srcIP & 0xFFF0 AS net

--partitioning {srcIP & 0xFFF0}

--plan
-- nets@1: aggregate TUMBLE(90 AS tb) by (srcIP & 65520) from tcp, sub-aggregated, level 1
-- pairs@1: aggregate TUMBLE(60 AS tb) by (srcIP & 65520) with nets@1 from tcp, sub-aggregated, level 1
-- nets = nets@1
-- pairs = pairs@1
