-- IP_PREFIX reads an address from text too, and keeps the number.

--stream pkts: time int64, ip int64, text string; ordered by time

--query q
SELECT time, IP_PREFIX(text, 16) AS net, IP_TEXT(IP_PREFIX(text, 24)) AS subnet FROM pkts WHERE time < 6

--plan
-- q = pkts where time < 6 select time, IP_NUMBER(text) & 4294901760 AS net, IP_TEXT(IP_NUMBER(text) & 4294967040) AS subnet

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
-- time int64 | net int64 | subnet string
-- 1 | 167772160 | 10.0.0.0
-- 2 | 167837696 | 10.1.1.0
-- 3 | 3232235520 | 192.168.1.0
-- 4 | 4294901760 | 255.255.255.0
-- 5 | 0 | 0.0.0.0

--duckdb q
SELECT time, ip & 4294901760 AS net, concat_ws('.', split_part(text, '.', 1), split_part(text, '.', 2), split_part(text, '.', 3), '0') AS subnet
FROM pkts WHERE time < 6
