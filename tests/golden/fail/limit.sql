-- LIMIT holds for each window, and here is none.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, price FROM bids ORDER BY price DESC LIMIT 3

--fail= LIMIT has no meaning in an endless stream: it holds for each window
