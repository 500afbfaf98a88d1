-- WITHIN GROUP belongs to a few aggregates.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT sum(len) WITHIN GROUP (ORDER BY len) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= WITHIN GROUP belongs to PERCENTILE_CONT(fraction), PERCENTILE_DISC(fraction) and LISTAGG,
