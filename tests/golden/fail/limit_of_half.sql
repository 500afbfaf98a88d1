-- LIMIT takes a whole number.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT time, price FROM bids ORDER BY price LIMIT 1.5 BY time

--fail= LIMIT and OFFSET take a whole number
