-- A number is no time.
--stream tcp: time int64, ts timestamp, x float64, name string, xs list(string); ordered by time

--query q
SELECT time, CAST(time AS TIMESTAMP) AS n FROM tcp

--fail= FROM_EPOCH(seconds) or FROM_EPOCH_MS(…) for a time
