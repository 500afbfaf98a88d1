-- LOG depends on the dialect.

--stream tcp: time int64, srcIP int64, len int64, name string; ordered by time

--query q
SELECT log(len) AS l FROM tcp

--fail= LOG is the natural logarithm in some engines and that to base 10 in others: write LN or
