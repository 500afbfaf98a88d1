-- What follows never ends.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (ORDER BY time ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS s FROM bids

--fail= UNBOUNDED FOLLOWING never ends in an endless stream
