-- FIRST follows the ordered attribute.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT first(len ORDER BY name) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= ORDER is not available in FIRST: FIRST and LAST follow the ordered attribute.
