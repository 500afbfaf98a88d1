-- Nothing tells when a row that waits for the next one comes.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT l, COUNT(*) AS n FROM (SELECT time, LEAD(price) OVER (PARTITION BY item ORDER BY time) AS l FROM bids) GROUP BY TUMBLE(time, 60), l

--fail= ordered attribute
