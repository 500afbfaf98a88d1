-- Two partitions in the order of time.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT LAG(price) OVER (PARTITION BY item ORDER BY time) AS a, LAG(price) OVER (PARTITION BY who ORDER BY time) AS b FROM bids

--fail= must have the same PARTITION BY
