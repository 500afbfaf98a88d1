-- Of a number and a text, both become texts.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: time int64, len string; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT time, len FROM udp

--fail= Write the first input as SELECT time, CAST(len AS VARCHAR) AS len FROM (…).
