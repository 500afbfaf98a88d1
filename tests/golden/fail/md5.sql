-- Hashes are for user functions.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT md5(name) AS h FROM tcp

--fail= MD5 is not available: register a user function over Arrow columns, session.function(…).
