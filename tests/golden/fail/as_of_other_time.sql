-- AS OF another time than that of the rows.

--stream sales: time int64, cur string, amount int64; ordered by time; lateness 5
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time FROM sales s JOIN rates FOR SYSTEM_TIME AS OF s.amount AS r ON s.cur = r.cur

--fail= FOR SYSTEM_TIME AS OF takes the time of the rows that are joined, time
