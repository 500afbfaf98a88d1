-- Every column has a name of its own.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT len, time AS len FROM tcp

--fail= SELECT: two columns are called 'len'. Give one another name
