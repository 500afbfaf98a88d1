-- Regular expressions have no look-around.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT regexp_matches(name, '(?=a)b') AS m FROM tcp

--fail= argument 2 of REGEXP_MATCHES is '(?=a)b'; expected a constant: a regular expression
