-- A fraction of an hour is no window.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT epoch(date_time) / 3600 AS h, count(*) AS n FROM bid GROUP BY 1

--fail= GROUP BY EPOCH(date_time) / 3600: this is computed of the ordered attribute 'date_time',
