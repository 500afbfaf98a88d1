-- A list belongs to a row of an input.

--stream s: time int64, k int64, xs list(int64); ordered by time
--stream t: time int64, k int64; ordered by time

--query q
SELECT u.x FROM UNNEST([1, 2]) AS u(x)

--fail= UNNEST stands beside the input that has the list: FROM t CROSS JOIN UNNEST(t.xs) AS u(x)
