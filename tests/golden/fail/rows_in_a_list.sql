-- Rows of values.

--stream tcp: time int64, len int64, name string; ordered by time

--query q
SELECT time FROM tcp WHERE (time, len) IN ((1, 2), (3, 4))

--fail= rows of values cannot be compared: compare each
