-- An origin is a time.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT time_bucket('1 hour', date_time, 5) AS b FROM bid

--fail= TIME_BUCKET takes an origin (TIMESTAMP '…') or an offset (INTERVAL '…') last, got 5. Days
