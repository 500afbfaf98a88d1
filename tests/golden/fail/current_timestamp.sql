-- The clock is not the same when an epoch is run again.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT CURRENT_TIMESTAMP AS t FROM bid

--fail= CURRENT_TIMESTAMP is not the same when an epoch is run again: use the ordered attribute.
