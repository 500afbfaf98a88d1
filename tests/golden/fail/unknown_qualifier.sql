-- An input has the name that AS gives it, and no other.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tcp.len FROM tcp AS t

--fail= character 8: there is no input 'tcp' here. Existing: t.
