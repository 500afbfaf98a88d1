-- A column in the same place may only have another name.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int64, size int32; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT time, size FROM udp

--fail= Write input 2 as SELECT time, CAST(size AS BIGINT) AS len FROM (…).
