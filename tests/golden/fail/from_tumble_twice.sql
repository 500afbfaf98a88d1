-- Windows of windows need other names.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TUMBLE(TUMBLE(bid, date_time, INTERVAL '10' SECOND), date_time, INTERVAL '20' SECOND)

--fail= TUMBLE gives its rows a column 'window_start', and the input has one already: give that
