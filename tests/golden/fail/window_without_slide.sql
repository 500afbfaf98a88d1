-- HOP has a size and a slide.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT COUNT(*) AS n FROM tcp GROUP BY HOP(time, 60)

--fail= HOP needs a size and a slide: HOP(time, 60, 10)
