-- A length of time is of the time.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (PARTITION BY time // 60 ORDER BY price RANGE 5 PRECEDING) AS s FROM bids

--fail= RANGE with a length of time needs ORDER BY time
