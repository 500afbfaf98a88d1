-- UNION without a time would have to remember every row.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT item FROM bids UNION SELECT who AS item FROM bids

--fail= UNION (if you do not need it, write UNION ALL) would have to remember every row for ever
