-- USING would be an equality of the times.

--stream sales: time int64, cur string, amount int64; ordered by time
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time, r.rate FROM sales s ASOF JOIN rates r USING (cur)

--fail= ASOF JOIN takes its conditions from ON
