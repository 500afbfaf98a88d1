-- Query-aware partitioning, section 6.2: statistics of subnets and the jitter of flows, where only one of the
-- two queries' own sets is possible. That of the statistics wins; by the rules of section 3.5.3 it suits the
-- self-join too. (The paper's jitter query has no bound of time; here it has, so that its state does not grow.)

--stream tcp: time int64, srcIP int64, destIP int64, srcPort int64, destPort int64, len int64, flags int64, seq int64; ordered by time
--permit tcp: srcIP, destIP, srcPort, destPort
--permit tcp: srcIP & 0xFFF0, destIP

--query subnets
SELECT tb, net, destIP, COUNT(*) AS cnt, SUM(len) AS bytes
FROM tcp
GROUP BY time/60 AS tb, srcIP & 0xFFF0 AS net, destIP

--query jitter
SELECT S1.time, S1.srcIP, S1.destIP, S1.time - S2.time AS delay
FROM tcp S1, tcp S2
WHERE S1.srcIP = S2.srcIP AND S1.destIP = S2.destIP AND S1.srcPort = S2.srcPort
  AND S1.destPort = S2.destPort AND S1.seq = S2.seq + 1
  AND S1.time BETWEEN S2.time AND S2.time + 60

--partitioning {srcIP & 0xFFF0, destIP}

--plan
-- subnets@1: aggregate TUMBLE(60 AS tb) by (srcIP & 65520, destIP) from tcp, sub-aggregated, level 1
-- jitter@1: INNER JOIN ON srcIP = srcIP AND destIP = destIP AND srcPort = srcPort AND destPort = destPort AND seq = seq + 1 WHERE (time >= time_S2) & (time <= (time_S2 + 60)) AS S2 by (srcIP & 65520, destIP) = (srcIP & 65520, destIP) with subnets@1 from tcp and tcp, level 1
-- subnets = subnets@1
-- jitter = jitter@1 select time, srcIP, destIP, time - time_S2 AS delay
