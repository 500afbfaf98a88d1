-- A query says what is wanted; where it goes is a sink.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
INSERT INTO tcp VALUES (1)

--fail= character 1: expected a SELECT, but this is INSERT
