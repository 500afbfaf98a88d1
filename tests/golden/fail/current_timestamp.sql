-- The rows of a group come in several epochs.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT MAX(CURRENT_TIMESTAMP) AS t FROM bid GROUP BY auction

--fail= CURRENT_TIMESTAMP is the time of the epoch, known in WHERE, and in SELECT without GROUP BY, aggregates and OVER: write it in a query around this one.
