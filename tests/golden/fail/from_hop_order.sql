-- In FROM the slide comes before the size.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM HOP(bid, date_time, INTERVAL '10' SECOND, INTERVAL '2' SECOND)

--fail= HOP: the slide is 10000000 and the size 2000000; expected a slide of at most the size. In
