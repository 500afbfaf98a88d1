-- Query-aware partitioning, section 4: flows and their number for each pair of hosts.

--stream tcp: time int64, srcIP int64, destIP int64, srcPort int64, destPort int64, len int64, flags int64, seq int64; ordered by time

--query tcp_flows
SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS cnt, SUM(len) AS bytes
FROM tcp
GROUP BY time/60 AS tb, srcIP, destIP, srcPort, destPort

--query flow_cnt
SELECT tb, srcIP, destIP, COUNT(*) AS flows
FROM tcp_flows
GROUP BY tb, srcIP, destIP

--partitioning {srcIP, destIP}

--plan
-- tcp_flows@1: aggregate TUMBLE(60 AS tb) by (srcIP, destIP) from tcp, sub-aggregated, level 1
-- flow_cnt@1: aggregate TUMBLE(1 AS tb) by (srcIP, destIP) with tcp_flows@1 from tcp_flows@1, level 1
-- tcp_flows = tcp_flows@1
-- flow_cnt = flow_cnt@1
