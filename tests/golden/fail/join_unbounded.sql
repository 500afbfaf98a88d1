-- A join whose rows may be any time apart would have to remember all of them.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM tcp a JOIN tcp b ON a.srcIP = b.destIP AND b.time >= a.time

--fail= Say on both sides how far apart they may be, such as time_b BETWEEN time - 60 AND time + 60, or accept it with the setting allow_unbounded_state=True
