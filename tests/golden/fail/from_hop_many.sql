-- A row in too many windows.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM HOP(bid, date_time, INTERVAL '1' MILLISECOND, INTERVAL '1' DAY)

--fail= HOP: every row would be in 86,400,000 windows; expected at most 10,000. Make the step
