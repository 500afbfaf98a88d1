-- MATCH_RECOGNIZE is refused by name.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY auction ORDER BY date_time MEASURES A.price AS p PATTERN (A B) DEFINE A AS A.price > 1)

--fail= MATCH_RECOGNIZE is not available: join the stream with itself within a bound of time, or
