-- Joins are understood, but cannot be run yet.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query flows
SELECT tb, srcIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP

--query q
SELECT a.srcIP, b.n FROM flows a, flows b WHERE a.srcIP = b.srcIP AND a.tb = b.tb + 1

--fail= Query 'q' joins two inputs. Joins cannot be run yet
