-- A join with the last 1,000 rows of the other input: both inputs are numbered in one order first.

--stream calls: time int64, caller int64, x int64; ordered by time
--stream masts: time int64, mast int64, x int64; ordered by time

--query near
SELECT c.time, c.caller, m.mast FROM calls c
JOIN masts m ON ABS(c.x - m.x) < 5 AND WITHIN_ROWS(1000)

--before
-- near@1: INNER JOIN WITHIN 1000 ROWS ON TRUE WHERE ABS(x - x_m) < 5 AS m from calls and masts
-- near = near@1 select time, caller, mast

--after
-- near@1-left: NUMBER FIRST from calls and masts
-- near@1-right: NUMBER SECOND from calls and masts
-- near@1: INNER JOIN WITHIN 1000 ROWS ON TRUE WHERE ABS(x - x_m) < 5 AS m from near@1-left and near@1-right
-- near = near@1 select time, caller, mast
