-- It may be that of the first input.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int64, len int64; ordered by time

--query q
SELECT time, CAST(len AS INTEGER) AS len FROM tcp UNION ALL SELECT time, len FROM udp

--fail= Write the first input as SELECT time, CAST(len AS BIGINT) AS len FROM (…).
