-- A length of a timestamp has a unit.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TUMBLE(bid, date_time, 10)

--fail= TUMBLE is 10, but the ordered attribute is a timestamp: give a length with its unit, e.g.
