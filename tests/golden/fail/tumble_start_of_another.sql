-- TUMBLE_START repeats the window of GROUP BY.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT TUMBLE_START(date_time, INTERVAL '5' SECOND) AS s, count(*) AS n FROM bid GROUP BY TUMBLE(date_time, INTERVAL '10' SECOND)

--fail= TUMBLE_START must repeat the window of GROUP BY, which has TUMBLE(date_time, INTERVAL
