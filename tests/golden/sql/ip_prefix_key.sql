-- IP_PREFIX is a mask, so the planner knows how it relates to the address.

--stream pkts: time int64, ip int64, text string; ordered by time

--query q
SELECT IP_TEXT(net) AS net, COUNT(*) AS n FROM pkts WHERE ip BETWEEN 0 AND 0xFFFFFFFF GROUP BY TUMBLE(time, 10), IP_PREFIX(ip, 8) AS net

--plan
-- q@1: aggregate TUMBLE(10) by (ip & 4278190080) from pkts where (ip >= 0) & (ip <= 4294967295), sub-aggregated, level 1
-- q = q@1 select IP_TEXT(net) AS net, n

--input pkts
-- time | ip | text
-- 1 | 167772161 | 10.0.0.1
-- 2 | 167837953 | 10.1.1.1
-- 3 | 3232235777 | 192.168.1.1
-- ~
-- 4 | 4294967295 | 255.255.255.255
-- 5 | 0 | 0.0.0.0
-- 6 | NULL | NULL
-- 7 | -1 | not an address
-- 8 | 4294967296 | 10.0.0.256

--expect q
-- net string | n int64
-- 0.0.0.0 | 1
-- 10.0.0.0 | 2
-- 192.0.0.0 | 1
-- 255.0.0.0 | 1

--duckdb q
SELECT CASE ip & 4278190080 WHEN 167772160 THEN '10.0.0.0' WHEN 3221225472 THEN '192.0.0.0' WHEN 0 THEN '0.0.0.0' ELSE '255.0.0.0' END AS net,
  count(*) AS n FROM pkts WHERE ip BETWEEN 0 AND 4294967295 GROUP BY ALL
