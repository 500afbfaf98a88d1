-- AT TIME ZONE is for times.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT price AT TIME ZONE 'UTC' AS t FROM bid

--fail= AT TIME ZONE needs a timestamp, but price is int64.
