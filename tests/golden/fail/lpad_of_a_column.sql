-- The length of a padded text is a constant.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT lpad(name, len) AS m FROM tcp

--fail= argument 2 of LPAD is len; expected a constant: a number of characters.
