-- Three inputs on one key.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid
--stream parcels: sent int64, id int64, item string; ordered by sent

--query q
SELECT o.id, o.time, p.paid, s.sent, s.item
FROM orders o JOIN payments p ON o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10
JOIN parcels s ON s.id = o.id AND ABS(s.sent - p.paid) <= 5

--plan
-- q@2: INNER JOIN ON id = id = id WHERE ((paid >= time) & (paid <= (time + 10))) & (ABS(sent - paid) <= 5) AS p, s by (id) = (id) = (id) from orders and payments and parcels, level 1
-- q = q@2 select id, time, paid, sent, item_s AS item

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

--input parcels
-- sent | id | item
-- 5 | 1 | pen
-- ~
-- 9 | 2 | ink
-- 15 | 1 | map
-- 16 | 1 | pen
-- ~
-- 37 | 4 | ink
-- 40 | 3 | pen

--expect q
-- id int64 | time int64 | paid int64 | sent int64 | item string
-- 1 | 1 | 3 | 5 | pen
-- 1 | 9 | 12 | 15 | map
-- 1 | 9 | 12 | 16 | pen
-- 2 | 2 | 4 | 9 | ink
-- 2 | 2 | 8 | 9 | ink
-- 4 | 30 | 33 | 37 | ink

--duckdb q
same
