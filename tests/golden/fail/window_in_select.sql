-- A window belongs into GROUP BY.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT TUMBLE(time, 60) AS w, len FROM tcp

--fail= TUMBLE is a window: it belongs into GROUP BY
