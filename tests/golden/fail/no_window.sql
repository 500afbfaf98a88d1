-- An aggregate without a window would never be final.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT srcIP, COUNT(*) AS n FROM tcp GROUP BY srcIP

--fail= This aggregate has no window, so it would never be final
--fail= emit='update' with the setting allow_unbounded_state=True
