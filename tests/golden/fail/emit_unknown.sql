-- EMIT has a few forms only.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT date_time, price FROM bid EMIT SOON PLEASE

--fail= EMIT SOON PLEASE is not available: expected one of EMIT ON WINDOW CLOSE, EMIT FINAL, EMIT
