-- The narrower integer of two is cast.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int32, len int16; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT time, len FROM udp

--fail= 'time' is int64 in the first input and int32 in input 2; 'len' is int64 in the first input and int16 in input 2
--fail= Write input 2 as SELECT CAST(time AS BIGINT) AS time, CAST(len AS BIGINT) AS len FROM (…).
