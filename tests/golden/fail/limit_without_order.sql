-- LIMIT needs an order.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time // 60 AS m, COUNT(*) AS n FROM bids GROUP BY time // 60 LIMIT 3

--fail= LIMIT has no meaning in an endless stream without an order
