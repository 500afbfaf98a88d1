-- TRUNC has no digits.

--stream tcp: time int64, x float64; ordered by time

--query q
SELECT time, TRUNC(x, 1) AS t FROM tcp

--fail= TRUNC of a number takes 1 argument
