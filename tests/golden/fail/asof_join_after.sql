-- A version of the same time counts.

--stream sales: time int64, cur string, amount int64; ordered by time
--stream rates: since int64, cur string, rate int64; ordered by since

--query q
SELECT s.time, r.rate FROM sales s ASOF JOIN rates r ON s.cur = r.cur AND s.time > r.since

--fail= ASOF JOIN needs ON with an equality, and rows.time >= versions.time
