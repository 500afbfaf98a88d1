-- A time is no number: engines count seconds, milliseconds or microseconds.
--stream tcp: time int64, ts timestamp, x float64, name string, xs list(string); ordered by time

--query q
SELECT time, CAST(ts AS BIGINT) AS n FROM tcp

--fail= Write EPOCH(ts) or EPOCH_US(ts) for a number
