-- USING in a full join: the column is the left's or the right's, whichever there is. Without bounds, rows wait for the end.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid
--set allow_unbounded_state=true

--query q
SELECT id, amount, item, way FROM orders FULL JOIN payments USING (id, amount)

--plan
-- q@1: FULL JOIN ON id = id AND amount = amount AS payments by (id, amount) = (id, amount) from orders and payments, level 1
-- q = q@1 select COALESCE(id, id_payments) AS id, COALESCE(amount, amount_payments) AS amount, item, way

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
-- id int64 | amount int64 | item string | way string
-- 1 | 10 | pen | card
-- 1 | 25 | map | card
-- 2 | 10 | NULL | cash
-- 2 | 12 | pen | NULL
-- 2 | 20 | NULL | card
-- 2 | 30 | ink | NULL
-- 3 | 10 | pen | NULL
-- 4 | 30 | ink | cash
-- 5 | 7 | NULL | card
-- NULL | 5 | cup | NULL
-- NULL | 5 | NULL | cash

--duckdb q
same
