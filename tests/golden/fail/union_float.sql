-- Of an integer and a float, both become floats.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int64, len float64; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT time, len FROM udp

--fail= 'len' is int64 in the first input and float64 in input 2
--fail= Write the first input as SELECT time, CAST(len AS DOUBLE) AS len FROM (…).
