-- GROUPS frames.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (ORDER BY time GROUPS 2 PRECEDING) AS s FROM bids

--fail= GROUPS
