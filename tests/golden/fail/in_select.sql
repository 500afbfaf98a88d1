-- IN without a bound would keep every value for ever.

--stream bids: time int64, item string, who string, price int64; ordered by time
--stream pays: done int64, who string, item string; ordered by done

--query q
SELECT time FROM bids WHERE item IN (SELECT item FROM pays)

--fail= Nothing says how much later
