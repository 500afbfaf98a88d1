-- A stream beside itself: two orders of one customer, the second after the first.

--stream orders: time int64, id int64, item string, amount int64; ordered by time

--query q
SELECT a.id, a.item AS before, a.time AS since, b.item, b.time
FROM orders a JOIN orders b ON a.id = b.id AND b.time > a.time AND b.time <= a.time + 30

--plan
-- q@1: INNER JOIN ON id = id WHERE (time_b > time) & (time_b <= (time + 30)) AS b by (id) = (id) from orders and orders, level 1
-- q = q@1 select id, item AS before, time AS since, item_b AS item, time_b AS time

--input orders
-- time | id | item | amount
-- 1 | 1 | pen | 10
-- 2 | 2 | ink | 30
-- 2 | NULL | cup | 5
-- ~
-- 7 | 3 | pen | 10
-- 9 | 1 | map | 25
-- ~
-- 30 | 4 | ink | 30
-- 31 | 2 | pen | 12

--expect q
-- id int64 | before string | since int64 | item string | time int64
-- 1 | pen | 1 | map | 9
-- 2 | ink | 2 | pen | 31

--duckdb q
same
