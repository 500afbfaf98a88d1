-- Flags that are not known.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT regexp_replace(name, 'a', 'b', 'z') AS m FROM tcp

--fail= argument 4 of REGEXP_REPLACE is 'z'; expected a constant: flags: 'g' for all places, 'i'
