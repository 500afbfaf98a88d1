-- A unit that does not exist.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT date_trunc('fortnight', date_time) AS b FROM bid

--fail= argument 1 of DATE_TRUNC is 'fortnight'; expected a constant: one of second, minute,
