-- STRING_AGG joins texts.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT string_agg(len, ',') AS s FROM tcp GROUP BY TUMBLE(time, 60)

--fail= STRING_AGG needs texts, but this is int64: CAST it to VARCHAR.
