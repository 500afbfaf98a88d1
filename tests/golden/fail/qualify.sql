-- QUALIFY without OVER is WHERE.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time FROM bids QUALIFY price > 3

--fail= QUALIFY needs OVER: filter with WHERE or HAVING
