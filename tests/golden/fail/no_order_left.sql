-- A window needs the ordered attribute, also over another query.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query lens
SELECT len FROM tcp

--query q
SELECT COUNT(*) AS n FROM lens GROUP BY TUMBLE(60)

--fail= the input has no ordered attribute any more
