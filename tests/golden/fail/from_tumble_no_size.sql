-- A window in FROM needs a size.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TUMBLE(bid, date_time)

--fail= TUMBLE in FROM takes an input, its ordered attribute, a size and, if need be, an offset:
