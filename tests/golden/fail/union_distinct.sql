-- UNION without a time would have to remember every row.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT item FROM bids UNION SELECT who AS item FROM bids

--fail= UNION (UNION ALL does not) would have to remember every row for ever
