-- A frame that begins after it ends.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (ORDER BY time ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS s FROM bids

--fail= this frame is empty
