-- A left join keeps orders that nothing was paid for: once nothing can come any more, NULL keys at once.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid

--query q
SELECT o.time, o.id, o.item, p.paid, p.way
FROM orders o LEFT JOIN payments p ON o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10 AND p.amount >= 20

--plan
-- q@1: LEFT JOIN ON id = id WHERE (paid >= time) & (paid <= (time + 10)) AS p by (id) = (id) from orders and payments where amount >= 20, level 1
-- q = q@1 select time, id, item, paid, way

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

--input payments
-- paid | id | amount | way
-- 3 | 1 | 10 | card
-- 4 | 2 | 20 | card
-- ~
-- 8 | 2 | 10 | cash
-- 8 | NULL | 5 | cash
-- 12 | 1 | 25 | card
-- ~
-- 33 | 4 | 30 | cash
-- 34 | 5 | 7 | card

--expect q
-- time int64 | id int64 | item string | paid int64 | way string
-- 1 | 1 | pen | NULL | NULL
-- 2 | 2 | ink | 4 | card
-- 2 | NULL | cup | NULL | NULL
-- 7 | 3 | pen | NULL | NULL
-- 9 | 1 | map | 12 | card
-- 30 | 4 | ink | 33 | cash
-- 31 | 2 | pen | NULL | NULL

--duckdb q
same
