-- NTILE can be computed of numbers.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT NTILE(4) OVER (PARTITION BY time // 60 ORDER BY price) AS n FROM bids

--fail= NTILE
