-- A row would be in more windows than can be computed.

--stream tcp: time int64, srcIP int64; ordered by time

--query q
SELECT window_start, COUNT(*) AS n FROM tcp GROUP BY HOP(time, 100000000, 1)

--fail= every row would be in 100,000,000 windows; expected at most 10,000
