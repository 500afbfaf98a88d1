-- A join whose rows may be any time apart would have to remember all of them.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM tcp a JOIN tcp b ON a.srcIP = b.destIP AND b.time >= a.time

--fail= Nothing says how much later b.time may be than a.time: conditions count that compare the two, give or take a constant, and stand in ON, joined by AND. Say, for instance, b.time BETWEEN a.time - 60 AND a.time + 60, or accept it
