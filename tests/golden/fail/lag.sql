-- Rows in the order of anything but time are never complete.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT LAG(price) OVER (PARTITION BY item ORDER BY price) AS before FROM bids

--fail= LAG: OVER needs ORDER BY time, ascending, or a window that ends
