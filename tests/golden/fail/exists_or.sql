-- EXISTS beside OR is no join.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids b WHERE price > 3 OR EXISTS (SELECT 1 FROM pays p WHERE p.who = b.who AND p.done = b.time)

--fail= IN and EXISTS with a sub-query stand in WHERE, alone or joined to others by AND
