-- IGNORE NULLS is said to be missing.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT LAG(price) IGNORE NULLS OVER (PARTITION BY item ORDER BY time) AS a FROM bids

--fail= IGNORE NULLS is not available
