-- A window in FROM needs the ordered attribute.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TUMBLE(bid, price, INTERVAL '10' SECOND)

--fail= TUMBLE needs the ordered attribute of its input, which is 'date_time'.
