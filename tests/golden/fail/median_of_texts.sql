-- MEDIAN is for numbers.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT median(name) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= QUANTILE_CONT(name, 0.5) needs a number, but name is string.
