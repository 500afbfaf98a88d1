-- A quote that is left open.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len FROM tcp WHERE name = 'x

--fail= is a quote left open?
