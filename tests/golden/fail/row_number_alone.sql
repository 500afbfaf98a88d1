-- ROW_NUMBER without OVER.

--stream bids: time int64, item string, who string, price int64; ordered by time

--query q
SELECT ROW_NUMBER() AS n FROM bids

--fail= ROW_NUMBER
