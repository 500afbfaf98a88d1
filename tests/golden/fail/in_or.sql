-- IN with a sub-query beside OR is no join.

--stream s: time int64, k int64, xs list(int64); ordered by time
--stream t: time int64, k int64; ordered by time

--query q
SELECT k FROM s WHERE k > 3 OR k IN (SELECT k FROM t)

--fail= IN and EXISTS with a sub-query stand in WHERE, alone or joined to others by AND
