-- One sign escapes.
--stream tcp: time int64, ts timestamp, x float64, name string, xs list(string); ordered by time

--query q
SELECT time FROM tcp WHERE name LIKE '50!!%' ESCAPE '!!'

--fail= ESCAPE takes one sign, as in LIKE '50!%' ESCAPE '!'.
