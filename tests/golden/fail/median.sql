-- Exact quantiles would keep all values.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, MEDIAN(len) AS m FROM tcp GROUP BY time/60 AS tb

--fail= character 12: MEDIAN is not available exactly, for it would keep all values: use APPROX_QUANTILE(x, 0.5)
