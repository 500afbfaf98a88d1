-- Lists of values would grow with the group.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, STRING_AGG(name, ',') AS m FROM tcp GROUP BY time/60 AS tb

--fail= STRING_AGG is not available, for it would keep all values: use FIRST, LAST or a UserAggregate
