-- Streams have plain names.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM net.tcp

--fail= character 17: a stream or query has a plain name, without a schema before it
