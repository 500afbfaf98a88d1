-- Of months only whole units of the calendar.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT time_bucket(INTERVAL '2 months', date_time) AS b, count(*) AS n FROM bid GROUP BY 1

--fail= TIME_BUCKET of 2 months is not available: 1 month, 3 months or 1 year are.
