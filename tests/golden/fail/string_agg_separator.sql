-- The separator is a constant.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT string_agg(name, name) AS s FROM tcp GROUP BY TUMBLE(time, 60)

--fail= The separator of STRING_AGG must be a constant text, got name.
