-- Windows of OVER have no names.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT SUM(len) OVER w AS s FROM tcp WINDOW w AS (ORDER BY time)

--fail= cannot be understood near 'w'. Named windows are not available: write OVER (…) out
