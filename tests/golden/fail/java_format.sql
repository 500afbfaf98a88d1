-- A letter that is not known in a format of Java's.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query q
SELECT date_format(ts, 'yyyy-QQ') AS s FROM log

--fail= the format 'yyyy-QQ' has 'QQ', which is not known; expected yyyy, uuuu, yy, MMMM, MMM,
