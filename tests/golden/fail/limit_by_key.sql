-- LIMIT n BY needs a window.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, item, price FROM bids ORDER BY price LIMIT 3 BY item

--fail= LIMIT n BY needs a window of the ordered attribute among others
