-- A time zone that does not exist.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT date_trunc('day', date_time, 'Mars/Phobos') AS b FROM bid

--fail= there is no time zone 'Mars/Phobos': expected one such as 'Europe/Berlin'.
