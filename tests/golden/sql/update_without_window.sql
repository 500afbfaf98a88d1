-- emit=update without a window: each epoch gives the groups that changed in it.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, flags int64; ordered by time
--set allow_unbounded_state=true
--epochs matter

--query totals emit=update
SELECT srcIP, COUNT(*) AS n, SUM(len) AS bytes FROM tcp GROUP BY srcIP

--plan
-- totals@1: aggregate UNBOUNDED on update by (srcIP) from tcp, sub-aggregated, level 1
-- totals = totals@1

--input tcp
-- time | srcIP | destIP | len | flags
-- 1 | 10 | 20 | 100 | 2
-- 5 | 10 | 20 | 200 | 16
-- 30 | 11 | 20 | 50 | 1
-- ~
-- 59 | 10 | 21 | 1500 | 24
-- 60 | 10 | 20 | 40 | 2
-- 75 | 11 | 20 | 60 | 18
-- ~
-- 118 | 11 | 22 | 700 | 16
-- 121 | 10 | 20 | 80 | 17
-- 130 | 12 | 20 | NULL | NULL

--expect totals
-- srcIP int64 | n int64 | bytes int64
-- 10 | 2 | 300
-- 10 | 4 | 1840
-- 10 | 5 | 1920
-- 11 | 1 | 50
-- 11 | 2 | 110
-- 11 | 3 | 810
-- 12 | 1 | NULL
