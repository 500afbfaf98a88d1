-- Joins on one key are one operator; another key, or another reader of the results, keeps them apart.

--stream a: time int64, k int64, x int64; ordered by time
--stream b: time int64, k int64, y int64; ordered by time
--stream c: time int64, k int64, z int64; ordered by time

--query all_three
SELECT a.time, a.k, x, y, z FROM a
JOIN b ON a.k = b.k AND b.time BETWEEN a.time - 60 AND a.time + 60
JOIN c ON b.k = c.k AND ABS(c.time - a.time) <= 60

--query chain
SELECT a.time, x, y, z FROM a
JOIN b ON a.k = b.k AND b.time BETWEEN a.time - 5 AND a.time + 5
JOIN c ON y = z AND ABS(c.time - a.time) <= 60

--query pairs
SELECT a.time, a.k, x, y FROM a JOIN b ON a.k = b.k AND ABS(b.time - a.time) <= 9

--before
-- pairs@1: INNER JOIN ON k = k WHERE ABS(time_b - time) <= 9 AS b from a and b
-- all_three@1: INNER JOIN ON k = k WHERE (time_b >= (time - 60)) & (time_b <= (time + 60)) AS b from a and b
-- all_three@2: INNER JOIN ON k_b = k WHERE ABS(time_c - time) <= 60 AS c from all_three@1 and c
-- chain@1: INNER JOIN ON k = k WHERE (time_b >= (time - 5)) & (time_b <= (time + 5)) AS b from a and b
-- chain@2: INNER JOIN ON y = z WHERE ABS(time_c - time) <= 60 AS c from chain@1 and c
-- pairs = pairs@1 select time, k, x, y
-- all_three = all_three@2 select time, k, x, y, z
-- chain = chain@2 select time, x, y, z

--after
-- pairs@1: INNER JOIN ON k = k WHERE ABS(time_b - time) <= 9 AS b from a and b
-- all_three@2: INNER JOIN ON k = k = k WHERE ((time_b >= (time - 60)) & (time_b <= (time + 60))) & (ABS(time_c - time) <= 60) AS b, c from a and b and c
-- chain@1: INNER JOIN ON k = k WHERE (time_b >= (time - 5)) & (time_b <= (time + 5)) AS b from a and b
-- chain@2: INNER JOIN ON y = z WHERE ABS(time_c - time) <= 60 AS c from chain@1 and c
-- pairs = pairs@1 select time, k, x, y
-- all_three = all_three@2 select time, k, x, y, z
-- chain = chain@2 select time, x, y, z
