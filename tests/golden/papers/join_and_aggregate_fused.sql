-- StreamCloud, section on optimisations: a join and an aggregate on the same key run in one subcluster.

--stream cdrs: start int64, finish int64, number int64, district int64; ordered by start
--stream suspects: time int64, number int64; ordered by time

--query joined
SELECT c.start, c.number, c.finish - c.start AS seconds
FROM cdrs c JOIN suspects s ON c.number = s.number AND c.start / 60 = s.time / 60

--query by_number
SELECT minute, number, SUM(seconds) AS seconds FROM joined GROUP BY start / 60 AS minute, number

--partitioning cdrs {number} = suspects {number}

--plan
-- joined@1: INNER JOIN ON number = number AND start // 60 = time // 60 AS s by (number) = (number) from cdrs and suspects, level 1
-- by_number@1: aggregate TUMBLE(60 AS minute) by (number) with joined@1 from joined@1 select start, number, finish - start AS seconds, level 1
-- joined = joined@1 select start, number, finish - start AS seconds
-- by_number = by_number@1 select minute, number, "SUM(seconds)" AS seconds
