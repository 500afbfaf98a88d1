-- A window in FROM reads what there is.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TUMBLE(bids, date_time, INTERVAL '10' SECOND)

--fail= there is no stream or query 'bids'. Did you mean 'bid'? Existing: bid.
