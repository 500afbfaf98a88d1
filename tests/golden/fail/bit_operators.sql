-- Bit operators bind differently in different dialects.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len & 1 | 8 AS x FROM tcp

--fail= different bit operators meet: say with parentheses which comes first
