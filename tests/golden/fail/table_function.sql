-- Rows come from streams.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT range FROM range(10)

--fail= there are no table functions such as RANGE(): rows come from streams
