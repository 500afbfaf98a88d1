-- MAX_BY takes two.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT max_by(len) AS m FROM tcp GROUP BY TUMBLE(time, 60)

--fail= MAX_BY takes 2 arguments, got 1.
