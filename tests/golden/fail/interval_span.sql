-- A span needs an amount for each unit.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT date_time + INTERVAL '1' HOUR TO SECOND AS t FROM bid

--fail= INTERVAL '1' has not one amount for each of hour, minute, second. Months and years have
