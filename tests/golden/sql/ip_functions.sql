-- Addresses as integers and as text; what is no address gives NULL.

--stream pkts: time int64, ip int64, text string; ordered by time

--query q
SELECT time, IP_TEXT(ip) AS t, IP_NUMBER(text) AS n, ip = IP_NUMBER('10.0.0.1') AS mine FROM pkts

--plan
-- q = pkts select time, IP_TEXT(ip) AS t, IP_NUMBER(text) AS n, ip = 167772161 AS mine

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
-- time int64 | t string | n int64 | mine boolean
-- 1 | 10.0.0.1 | 167772161 | true
-- 2 | 10.1.1.1 | 167837953 | false
-- 3 | 192.168.1.1 | 3232235777 | false
-- 4 | 255.255.255.255 | 4294967295 | false
-- 5 | 0.0.0.0 | 0 | false
-- 6 | NULL | NULL | NULL
-- 7 | NULL | NULL | false
-- 8 | NULL | NULL | false

--duckdb q
SELECT time,
  CASE WHEN ip BETWEEN 0 AND 4294967295 THEN concat_ws('.', ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255) END AS t,
  CASE WHEN time < 6 THEN ip END AS n, ip = 167772161 AS mine FROM pkts
