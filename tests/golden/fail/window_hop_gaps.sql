-- A slide above the size would leave rows out, as when the two are exchanged.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time

--query q
SELECT window_start, window_end, COUNT(*) AS n FROM tcp GROUP BY HOP(time, 10, 60)

--fail= the slide is 60 and the size 10, so rows between two windows would be in none. Here the size comes first
