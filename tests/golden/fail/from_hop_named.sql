-- Names of arguments are those of Flink.

--stream bid: date_time timestamp, auction int64, price int64; ordered by date_time

--query q
SELECT * FROM TABLE(HOP(DATA => TABLE bid, TIMECOL => DESCRIPTOR(date_time), SLIDE => INTERVAL '1' SECOND))

--fail= HOP in FROM takes an input, its ordered attribute, a slide and a size and, if need be, an
