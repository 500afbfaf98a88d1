-- Distinct rows without a time would have to be remembered for ever.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT DISTINCT item FROM bids

--fail= SELECT DISTINCT would have to remember every row for ever: select the ordered attribute or a window
