-- A specifier that engines differ in.

--stream log: ts timestamp, host string, ms float64, n int64; ordered by ts

--query q
SELECT strftime(ts, '%Q') AS s FROM log

--fail= the format '%Q' has '%Q', which is not known; expected % and one of
