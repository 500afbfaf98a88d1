-- Only queries are read.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
CREATE TABLE x AS SELECT len FROM tcp

--fail= character 1: expected a SELECT, but this is CREATE
