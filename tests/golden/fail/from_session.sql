-- SESSION belongs into GROUP BY.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM SESSION(bid, date_time, INTERVAL '10' SECOND)

--fail= SESSION in FROM is not available: write GROUP BY SESSION(ts, INTERVAL '10' SECOND).
