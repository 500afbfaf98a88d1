-- The size of CUMULATE is a multiple of its step.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM CUMULATE(bid, date_time, INTERVAL '3' SECOND, INTERVAL '10' SECOND)

--fail= CUMULATE: the size 10000000 is no multiple of the step 3000000.
