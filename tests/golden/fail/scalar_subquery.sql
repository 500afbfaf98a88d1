-- A value of all rows there are is never known.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids WHERE price > (SELECT AVG(price) FROM bids)

--fail= needs an equality with the rows around it
