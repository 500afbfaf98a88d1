-- More rows than are kept of a group.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT LAG(price, 20000) OVER (ORDER BY time) AS s FROM bids

--fail= LAG takes a number from 0 to 10,000, not 20000
