-- Lengths of time over timestamps have a unit.

--stream log: ts timestamp, host string, ms float64; ordered by ts

--query q
SELECT COUNT(*) AS n FROM log GROUP BY TUMBLE(ts, 60)

--fail= the ordered attribute is a timestamp: give a length with its unit, e.g. "60 seconds"
