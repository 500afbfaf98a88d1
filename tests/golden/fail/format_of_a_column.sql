-- A format is a constant.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query q
SELECT strftime(ts, host) AS s FROM log

--fail= a format of times must be a constant text, got host.
