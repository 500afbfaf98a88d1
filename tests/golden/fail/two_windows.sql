-- A group has one window.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT COUNT(*) AS n FROM tcp GROUP BY TUMBLE(time, 60), HOP(time, 60, 10)

--fail= GROUP BY has two windows, TUMBLE(60) and HOP(60, 10): keep one
