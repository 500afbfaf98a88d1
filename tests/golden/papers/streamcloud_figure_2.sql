-- StreamCloud, Figure 2: map, filter, join, filter, aggregate, map. Subqueries are the stateless prefix, which runs
-- where rows are read, the join with its filter, and the aggregate with its map.

--stream cdrs: start int64, finish int64, number int64, district int64; ordered by start
--stream suspects: time int64, number int64; ordered by time

--query mapped
SELECT start, finish - start AS seconds, number, district FROM cdrs

--query filtered
SELECT start, seconds, number, district FROM mapped WHERE seconds > 10

--query joined
SELECT f.start, f.seconds, f.number, f.district
FROM filtered f JOIN suspects s ON f.number = s.number AND f.start / 60 = s.time / 60

--query short
SELECT start, seconds, district FROM joined WHERE seconds < 3600

--query by_district
SELECT minute, district, SUM(seconds) AS seconds FROM short GROUP BY start / 60 AS minute, district

--query hours
SELECT minute, district, seconds / 3600 AS hours FROM by_district

--partitioning cdrs {number} = suspects {number}

--plan
-- joined@1: INNER JOIN ON number = number AND start // 60 = time // 60 AS s by (number) = (number) from cdrs select start, finish - start AS seconds, number, district where seconds > 10 and suspects, level 1
-- by_district@1: aggregate TUMBLE(60 AS minute) by (district) from joined@1 select start, seconds, number, district where seconds < 3600 select start, seconds, district, sub-aggregated, level 2
-- mapped = cdrs select start, finish - start AS seconds, number, district
-- filtered = cdrs select start, finish - start AS seconds, number, district where seconds > 10
-- joined = joined@1 select start, seconds, number, district
-- short = joined@1 select start, seconds, number, district where seconds < 3600 select start, seconds, district
-- by_district = by_district@1 select minute, district, "SUM(seconds)" AS seconds
-- hours = by_district@1 select minute, district, "SUM(seconds)" AS seconds select minute, district, seconds // 3600 AS hours
