-- Lists are no texts.
--stream tcp: time int64, ts timestamp, x float64, name string, xs list(string); ordered by time

--query q
SELECT time, CONCAT_WS('-', xs, name) AS n FROM tcp

--fail= expected texts. LIST_CONCAT joins lists.
