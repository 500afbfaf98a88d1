-- The last row of a key is never known without a window.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT ROW_NUMBER() OVER (PARTITION BY item ORDER BY time DESC) AS n FROM bids

--fail= which row is the last of its group is never known
--fail= TUMBLE(time
