-- EXISTS without a condition on the rows around it.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids WHERE EXISTS (SELECT 1 FROM pays WHERE done > 3)

--fail= EXISTS needs a condition between the sub-query and the rows around it
