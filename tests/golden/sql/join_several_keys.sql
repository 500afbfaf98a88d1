-- Three equalities, one of them between times.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid

--query q
SELECT o.time, o.id, o.amount, p.way
FROM orders o JOIN payments p ON o.id = p.id AND o.amount = p.amount AND o.time + 3 = p.paid

--plan
-- q@1: INNER JOIN ON id = id AND amount = amount AND time + 3 = paid AS p by (id, amount) = (id, amount) from orders and payments, level 1
-- q = q@1 select time, id, amount, way

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
-- time int64 | id int64 | amount int64 | way string
-- 9 | 1 | 25 | card
-- 30 | 4 | 30 | cash

--duckdb q
same
