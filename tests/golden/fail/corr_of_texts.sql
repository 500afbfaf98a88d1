-- CORR is for numbers.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT corr(name, len) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= CORR needs two numbers, but one is string.
