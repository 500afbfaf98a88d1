-- A key of a map has one value.

--stream s: time int64, k int64; ordered by time

--query q
SELECT MAP(['a', 'a'], [k, 1]) AS m FROM s

--fail= MAP needs keys that are constants and different from each other
