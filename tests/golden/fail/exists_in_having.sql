-- EXISTS with a sub-query is for WHERE.

--stream s: time int64, k int64, xs list(int64); ordered by time
--stream t: time int64, k int64; ordered by time

--query q
SELECT k, COUNT(*) AS n FROM s GROUP BY time // 10, k HAVING EXISTS (SELECT 1 FROM t WHERE t.k = k)

--fail= EXISTS stands in WHERE
