-- Elements of a list are asked for with a function.

--stream s: time int64, k int64, xs list(int64); ordered by time
--stream t: time int64, k int64; ordered by time

--query q
SELECT k FROM s WHERE k = ANY (xs)

--fail= LIST_CONTAINS(xs, value) for a list
