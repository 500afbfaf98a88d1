-- A pattern is a constant.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT regexp_matches(name, name) AS m FROM tcp

--fail= argument 2 of REGEXP_MATCHES is name; expected a constant: a text.
