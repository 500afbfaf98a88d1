-- A right temporal join.

--stream sales: time int64, cur string, amount int64; ordered by time; lateness 5
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time FROM sales s RIGHT JOIN rates FOR SYSTEM_TIME AS OF s.time AS r ON r.cur = s.cur

--fail= A temporal join is INNER or LEFT, not RIGHT
