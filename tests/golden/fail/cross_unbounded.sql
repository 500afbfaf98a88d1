-- CROSS JOIN of everything with everything.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT b.time FROM bids b CROSS JOIN pays p

--fail= nothing says which rows of 'p' belong to which of 'b'
