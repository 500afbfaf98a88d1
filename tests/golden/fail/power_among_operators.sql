-- As a power, ^ binds more than the parser knows.
--stream tcp: time int64, ts timestamp, x float64, name string, xs list(string); ordered by time

--query q dialect=duckdb
SELECT time, 2 * x ^ 2 AS n FROM tcp

--fail= ^ is a power here, among other operators: write POWER(x, y), or parentheses.
