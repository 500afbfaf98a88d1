-- StreamCloud, Figure 1: calls of suspicious numbers by their duration. Two subqueries: the join with the map
-- behind it, by the number, and the aggregate, by the duration.

--stream cdrs: start int64, finish int64, number int64, district int64; ordered by start
--stream suspects: time int64, number int64; ordered by time

--query calls
SELECT c.start, (c.finish - c.start) / 60 AS duration
FROM cdrs c JOIN suspects s ON c.number = s.number AND c.start / 60 = s.time / 60

--query durations
SELECT minute, duration, COUNT(*) AS calls
FROM calls
GROUP BY start / 60 AS minute, duration

--partitioning cdrs {number} = suspects {number}

--plan
-- calls@1: INNER JOIN ON number = number AND start // 60 = time // 60 AS s by (number) = (number) from cdrs and suspects, level 1
-- durations@1: aggregate TUMBLE(60 AS minute) by (duration) from calls@1 select start, (finish - start) // 60 AS duration, sub-aggregated, level 2
-- calls = calls@1 select start, (finish - start) // 60 AS duration
-- durations = durations@1
