-- BOOL_AND is for conditions.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT bool_and(len) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= BOOL_AND needs a condition, but len is int64.
