-- A fraction lies between 0 and 1.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT quantile_cont(len, 1.5) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= A quantile needs a fraction from 0 to 1, not 1.5.
