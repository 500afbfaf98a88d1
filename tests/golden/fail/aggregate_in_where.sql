-- WHERE comes before the groups.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT tb, COUNT(*) AS n FROM tcp
WHERE COUNT(*) > 3
GROUP BY time/60 AS tb

--fail= line 2, character 7: COUNT in WHERE: WHERE chooses rows before they are grouped. Use HAVING
