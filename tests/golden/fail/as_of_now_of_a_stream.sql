-- A stream has versions by time, not one of now.

--stream sales: time int64, cur string, amount int64; ordered by time
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time, r.rate FROM sales s JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON s.cur = r.cur

--fail= FOR SYSTEM_TIME AS OF now is for tables
