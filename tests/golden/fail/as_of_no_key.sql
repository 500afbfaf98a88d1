-- AS OF without a key.

--stream sales: time int64, cur string, amount int64; ordered by time; lateness 5
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time FROM sales s JOIN rates FOR SYSTEM_TIME AS OF s.time AS r ON r.rate > s.amount

--fail= joins by equalities
