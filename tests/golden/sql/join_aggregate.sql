-- An aggregate over a join: the time is the left's.

--stream orders: time int64, id int64, item string, amount int64; ordered by time
--stream payments: paid int64, id int64, amount int64, way string; ordered by paid

--query q
SELECT tb, p.way, COUNT(*) AS n, SUM(p.amount) AS total
FROM orders o JOIN payments p ON o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10
GROUP BY o.time/10 AS tb, p.way

--plan
-- q@1: INNER JOIN ON id = id WHERE (paid >= time) & (paid <= (time + 10)) AS p by (id) = (id) from orders and payments, level 1
-- q@2: aggregate TUMBLE(10 AS tb) by (way) from q@1, sub-aggregated, level 2
-- q = q@2

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
-- tb int64 | way string | n int64 | total int64
-- 0 | card | 3 | 55
-- 0 | cash | 1 | 10
-- 3 | cash | 1 | 30

--duckdb q
SELECT o.time // 10 AS tb, p.way, count(*) AS n, sum(p.amount)::BIGINT AS total
FROM orders o JOIN payments p ON o.id = p.id AND p.paid BETWEEN o.time AND o.time + 10 GROUP BY ALL
