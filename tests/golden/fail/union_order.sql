-- Columns go by name, and stand in the same order.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time
--stream udp: len int64, time int64; ordered by time

--query q
SELECT time, len FROM tcp UNION ALL SELECT * FROM udp

--fail= the columns stand in another order in input 2. Write input 2 as SELECT time, len FROM (…).
