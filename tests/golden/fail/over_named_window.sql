-- A window that nobody has named.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT SUM(price) OVER w AS s FROM bids WINDOW v AS (ORDER BY time)

--fail= there is no window 'w'
