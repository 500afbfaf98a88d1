-- No key says where rows meet: the join gets a grid. What reads its results has an exchange of its own.

--stream calls: time int64, caller int64, until int64; ordered by time

--query overlaps
SELECT a.time, a.caller, b.caller AS other FROM calls a
JOIN calls b ON b.time < a.until AND a.time < b.until AND a.caller < b.caller
 AND ABS(a.time - b.time) <= 60

--query busy
SELECT minute, caller, COUNT(*) AS n FROM overlaps GROUP BY time/60 AS minute, caller

--before
-- overlaps@1: INNER JOIN ON TRUE WHERE (((time_b < until) & (time < until_b)) & (caller < caller_b)) & (ABS(time - time_b) <= 60) AS b by () = () from calls and calls
-- busy@1: aggregate TUMBLE(60 AS minute) by (caller) from overlaps@1 select time, caller, caller_b AS other
-- overlaps = overlaps@1 select time, caller, caller_b AS other
-- busy = busy@1

--after
-- overlaps@1: INNER JOIN ON TRUE WHERE (((time_b < until) & (time < until_b)) & (caller < caller_b)) & (ABS(time - time_b) <= 60) AS b in a grid from calls and calls
-- busy@1: aggregate TUMBLE(60 AS minute) by (caller) from overlaps@1 select time, caller, caller_b AS other
-- overlaps = overlaps@1 select time, caller, caller_b AS other
-- busy = busy@1
