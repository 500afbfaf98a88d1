-- NOT IN where NULL may be among the values.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids b WHERE who NOT IN (SELECT p.who FROM pays p WHERE p.done BETWEEN b.time AND b.time + 5)

--fail= NOT IN (SELECT …) is never true where a NULL is among the values
