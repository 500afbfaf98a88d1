-- The same conditions in WHERE; one on an input alone is a filter of that input.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid

--query q
SELECT o.id, o.item, p.paid FROM orders o, payments p
WHERE o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10 AND p.way = 'card' AND o.amount + p.amount > 40

--plan
-- q@1: INNER JOIN ON id = id WHERE ((paid >= time) & (paid <= (time + 10))) & ((amount + amount_p) > 40) AS p by (id) = (id) from orders and payments where way = 'card', level 1
-- q = q@1 select id, item, paid

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
-- id int64 | item string | paid int64
-- 1 | map | 12
-- 2 | ink | 4

--duckdb q
same
