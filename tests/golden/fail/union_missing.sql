-- A column that one input lacks is NULL there.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int64; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT time FROM udp

--fail= 'len' is int64 in the first input and missing in input 2
--fail= Write input 2 as SELECT time, CAST(NULL AS BIGINT) AS len FROM (…).
