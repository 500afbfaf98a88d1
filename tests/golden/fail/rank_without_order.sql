-- A rank of nothing.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT RANK() OVER (PARTITION BY time // 60) AS n FROM bids

--fail= RANK needs ORDER BY in OVER
