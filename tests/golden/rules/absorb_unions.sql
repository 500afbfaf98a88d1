-- A union of two filtered parts of a stream: its reader takes rows from both.

--stream tcp: time int64, srcIP int64, destIP int64, len int64; ordered by time

--query ends
SELECT time, srcIP FROM tcp WHERE len < 50 UNION ALL SELECT time, srcIP FROM tcp WHERE len > 1400

--query counts
SELECT tb, srcIP, COUNT(*) AS n FROM ends GROUP BY time/60 AS tb, srcIP

--before
-- ends@union1: union from tcp where len < 50 select time, srcIP and tcp where len > 1400 select time, srcIP
-- counts@1: aggregate TUMBLE(60 AS tb) from ends@union1
-- ends = ends@union1
-- counts = counts@1

--after
-- counts@1: aggregate TUMBLE(60 AS tb) from tcp where len < 50 select time, srcIP and tcp where len > 1400 select time, srcIP
-- ends = tcp where len < 50 select time, srcIP and tcp where len > 1400 select time, srcIP
-- counts = counts@1
