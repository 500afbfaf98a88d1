-- An interval where the time is a number.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER (ORDER BY time RANGE INTERVAL '5' MINUTE PRECEDING) AS s FROM bids

--fail= RANGE needs a length of time: a number in the unit of the time
