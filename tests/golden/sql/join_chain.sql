-- A join over a join, by another key: what was ordered, paid, then sent.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid
--stream parcels: sent int64, id int64, item string; ordered by sent

--query q
SELECT o.id, o.item, p.paid, s.sent
FROM orders o JOIN payments p ON o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10
JOIN parcels s ON o.item = s.item AND s.sent BETWEEN p.paid AND p.paid + 8

--plan
-- q@1: INNER JOIN ON id = id WHERE (paid >= time) & (paid <= (time + 10)) AS p by (id) = (id) from orders and payments, level 1
-- q@2: INNER JOIN ON item = item WHERE (sent >= paid) & (sent <= (paid + 8)) AS s by (item) = (item) from q@1 and parcels, level 2
-- q = q@2 select id, item, paid, sent

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
-- id int64 | item string | paid int64 | sent int64
-- 1 | map | 12 | 15
-- 1 | pen | 3 | 5
-- 2 | ink | 4 | 9
-- 2 | ink | 8 | 9
-- 4 | ink | 33 | 37

--duckdb q
same
