-- A window is one of the ordered attribute.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT COUNT(*) AS n FROM tcp GROUP BY TUMBLE(len, 60)

--fail= TUMBLE needs the ordered attribute, which is 'time'
