-- Not every aggregate can go on for ever.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT STDDEV(price) OVER (ORDER BY time) AS s FROM bids

--fail= from UNBOUNDED PRECEDING on there are count, sum, min, max, avg
