-- Comparing with any row of a sub-query is not there.

--stream s: time int64, k int64, xs list(int64); ordered by time
--stream t: time int64, k int64; ordered by time

--query q
SELECT k FROM s WHERE k = ANY (SELECT k FROM t)

--fail= ANY and ALL are not available
