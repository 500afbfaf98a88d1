-- Keys are computed: times in fives, amounts in tens.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid

--query q
SELECT o.time, o.item, p.paid, p.amount
FROM orders o LEFT JOIN payments p ON o.amount/10 = p.amount/10 AND o.time/5 = p.paid/5

--plan
-- q@1: LEFT JOIN ON amount // 10 = amount // 10 AND time // 5 = paid // 5 AS p by (amount // 10) = (amount // 10) from orders and payments, level 1
-- q = q@1 select time, item, paid, amount_p AS amount

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
-- time int64 | item string | paid int64 | amount int64
-- 1 | pen | 3 | 10
-- 2 | cup | NULL | NULL
-- 2 | ink | NULL | NULL
-- 7 | pen | 8 | 10
-- 9 | map | NULL | NULL
-- 30 | ink | 33 | 30
-- 31 | pen | NULL | NULL

--duckdb q
SELECT o.time, o.item, p.paid, p.amount
FROM orders o LEFT JOIN payments p ON o.amount // 10 = p.amount // 10 AND o.time // 5 = p.paid // 5
