-- What follows in time is not known.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (ORDER BY time RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS s FROM bids

--fail= RANGE goes up to CURRENT ROW here
