-- A join without any condition would pair every row with every row.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
SELECT a.len FROM tcp a, tcp b WHERE a.len > 100

--fail= character 26: nothing says which rows of 'b' belong to which of 'a', so every row would meet every row
