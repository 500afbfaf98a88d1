-- No mode.

--stream tcp: time int64, len int64, name string; ordered by time

--query q
SELECT time // 60 AS m, MODE() WITHIN GROUP (ORDER BY len) AS s FROM tcp GROUP BY time // 60

--fail= WITHIN GROUP belongs to PERCENTILE_CONT(fraction)
