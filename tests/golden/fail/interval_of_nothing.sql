-- An interval of no length.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT date_time + INTERVAL '1 fortnight' AS t FROM bid

--fail= INTERVAL '1 fortnight' is not a length of time: expected a whole number and one of
