-- Rows of a length of time, and rows that follow.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT LEAD(price) OVER (ORDER BY time) AS l, SUM(price) OVER (ORDER BY time RANGE 5 PRECEDING) AS s FROM bids

--fail= cannot meet in one SELECT
