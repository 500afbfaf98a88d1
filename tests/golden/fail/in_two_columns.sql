-- IN compares one column.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids WHERE item IN (SELECT item, who FROM pays)

--fail= IN (SELECT …) takes one column
