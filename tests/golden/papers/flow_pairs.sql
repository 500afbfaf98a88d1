-- Query-aware partitioning, sections 3.2 and 6.3: one set suits all three queries, self-join included.

--stream tcp: time int64, srcIP int64, destIP int64, srcPort int64, destPort int64, len int64, flags int64, seq int64; ordered by time

--query flows
SELECT tb, srcIP, destIP, COUNT(*) AS cnt
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP

--query heavy_flows
SELECT tb, srcIP, MAX(cnt) AS max_cnt
FROM flows
GROUP BY tb, srcIP

--query flow_pairs
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt
FROM heavy_flows S1, heavy_flows S2
WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1

--partitioning {srcIP}

--plan
-- flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, sub-aggregated, level 1
-- heavy_flows@1: aggregate TUMBLE(1 AS tb) by (srcIP) with flows@1 from flows@1, level 1
-- flow_pairs@1: INNER JOIN ON srcIP = srcIP AND tb = tb + 1 AS S2 by (srcIP) = (srcIP) with flows@1 from heavy_flows@1 and heavy_flows@1, level 1
-- flows = flows@1
-- heavy_flows = heavy_flows@1
-- flow_pairs = flow_pairs@1 select tb, srcIP, max_cnt, max_cnt_S2
