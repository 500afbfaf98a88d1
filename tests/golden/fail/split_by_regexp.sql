-- Spark's split by a regular expression.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q dialect=spark
SELECT split(name, '[a-c]') AS m FROM tcp

--fail= SPLIT by the regular expression '[a-c]' is not available.
