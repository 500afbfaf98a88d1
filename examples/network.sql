-- Network monitoring: who talks to whom, who talks most, and who attacks?
--
--   anabranch explain examples/network.sql
--   anabranch run examples/network.sql
--
-- Half a million generated packets, four minutes of traffic. Look at the attackers in the terminal; the
-- other results lie in out/network/. The same packets come every time, so expect among the attackers
--
--   tb     attacker  flows  packets
--    0  10.0.211.14      8      423
--    0  10.0.229.53      8      130
--    4  10.0.211.14      8       59
--
-- and among the flow pairs
--
--   tb      srcIP  before  after
--    1  167857563     961    936
--    4  167772160    4119    653
--
-- The run remembers in out/network/checkpoint how far it came: to run it anew, remove out/network.

-- A stream has one column that grows with time. Packets may come three seconds out of order; a minute is
-- over, and its results appear, when a packet three seconds younger than its end has come.
-- For packets of your own: WITH (path = 'data/tcp'), a folder of Parquet, Arrow, CSV or JSON files.
CREATE STREAM tcp
  ORDERED BY time LATENESS 3
  WITH (generator = 'packets', rows = 500_000, rows_per_second = 2000, skew = 'zipf', disorder = 3);

-- Traffic between two hosts by the minute. time/60 numbers the minutes: it is the window of the group.
CREATE QUERY flows AS
  SELECT tb, srcIP, destIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM tcp
  GROUP BY time/60 AS tb, srcIP, destIP;

-- A query may read another one: the heavy flows of each source, from the results of flows.
CREATE QUERY heavy_flows AS
  SELECT tb, srcIP, COUNT(*) AS peers, MAX(packets) AS heaviest
  FROM flows
  GROUP BY tb, srcIP
  HAVING MAX(packets) >= 100;

-- A query may be joined with itself: sources with heavy flows in two minutes in a row. S1.tb = S2.tb + 1
-- says how far apart the rows are, so a minute is forgotten as soon as the next one is over.
CREATE QUERY flow_pairs AS
  SELECT S1.tb, S1.srcIP, S2.heaviest AS before, S1.heaviest AS after
  FROM heavy_flows S1, heavy_flows S2
  WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1;

-- Connections whose packets together have the flags FIN, PSH and URG and no other: no honest one has.
CREATE QUERY suspicious AS
  SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS packets
  FROM tcp
  GROUP BY time/60 AS tb, srcIP, destIP, srcPort, destPort
  HAVING BIT_OR(flags) = 0x29;

-- A view is a query without a sink. There are sub-queries, too, and functions for single values.
CREATE VIEW attacks AS
  SELECT tb, srcIP, COUNT(*) AS flows, SUM(packets) AS packets
  FROM suspicious
  GROUP BY tb, srcIP;

CREATE QUERY attackers AS
  SELECT tb,
         CAST(srcIP >> 24 AS STRING) || '.' || CAST((srcIP >> 16) & 255 AS STRING) || '.' ||
           CAST((srcIP >> 8) & 255 AS STRING) || '.' || CAST(srcIP & 255 AS STRING) AS attacker,
         flows, packets
  FROM attacks
  WHERE packets >= 50;

-- TUMBLE is the same window with its borders, which are called window_start and window_end.
CREATE QUERY subnets AS
  SELECT window_start, window_end, srcIP & 0xFFFFFF00 AS subnet,
         COUNT(*) AS packets, SUM(len) / COUNT(*) AS mean_len, COUNT(DISTINCT srcIP) AS hosts
  FROM tcp
  GROUP BY TUMBLE(time, 60), srcIP & 0xFFFFFF00;

-- An endless stream has no ten greatest sources, but it has those above a limit: every ten seconds,
-- the sources with more than 2 MB in the minute before.
CREATE QUERY top_talkers AS
  SELECT window_end AS time, srcIP, SUM(len) AS bytes
  FROM tcp
  GROUP BY HOP(time, 60, 10), srcIP
  HAVING SUM(len) > 2_000_000;

CREATE SINK flows TO 'out/network/flows';                            -- Parquet
CREATE SINK heavy_flows TO 'out/network/heavy_flows' WITH (format = 'csv');
CREATE SINK flow_pairs TO 'out/network/flow_pairs' WITH (format = 'csv');
CREATE SINK suspicious TO 'out/network/suspicious' WITH (format = 'json');
CREATE SINK subnets TO 'out/network/subnets';
CREATE SINK top_talkers TO 'out/network/top_talkers' WITH (format = 'csv');
CREATE SINK attackers TO CONSOLE;

SET checkpoint = 'out/network/checkpoint';
SET at_end = 'close';                -- the generator ends, so the last minute is over, too
SET max_rows_per_epoch = 100_000;    -- in several epochs, to see results come while it runs
