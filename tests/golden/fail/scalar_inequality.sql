-- A value that is not met by equalities.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time, (SELECT COUNT(*) FROM pays p WHERE p.done < b.time) AS w FROM bids b

--fail= by equalities only
