-- Two windows of one name.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER w AS s FROM bids WINDOW w AS (ORDER BY time), w AS (ORDER BY time)

--fail= two windows are called 'w'
