-- What the same words mean in each dialect: patterns, texts, rounding, parts of times, NULL.

--stream a: time int64, ts timestamp, x float64, n int64, s string; ordered by time

--no oracle: DuckDB has no INITCAP
--query ours
SELECT time, s LIKE '%!_%' ESCAPE '!' AS a, s NOT LIKE '%!%%' ESCAPE '!' AS b, s ILIKE 'A!_%w%' ESCAPE '!' AS c, s LIKE '%\_%' AS d, round(x) AS e, CAST(x AS INT) AS f, n ^ 2 AS g, substring(s, 0, 3) AS h, greatest(n, 1) AS i, extract(dow FROM ts) AS j, extract(second FROM ts) AS k, initcap(s) AS l FROM a

--query duckdb dialect=duckdb
SELECT time, s LIKE '%\_%' AS a, round(x) AS b, round(x, 2) AS c, CAST(x AS INT) AS d, n ^ 2 AS e, (n + 1) ^ 2 AS f, extract(second FROM ts) AS g, substring(s, 0, 3) AS h, CAST(2.5 AS INT) AS i FROM a

--query spark dialect=spark
SELECT time, regexp_replace(s, '\\d', '#') AS a, regexp_extract(s, r'(\d)', 1) AS b, s LIKE '%\_%' AS c, 'it\'s\"' AS d, substring(s, 0, 3) AS e, substring(s, n * 0, 2) AS f, round(x, 2) AS g, CAST(x AS INT) AS h, CAST(ts AS BIGINT) AS i, CAST(CAST(90 AS TIMESTAMP) AS DOUBLE) AS j, extract(dow FROM ts) AS k, extract(second FROM ts) AS l, initcap(s) AS m, isnan(x) AS o, add_months(ts, 1) AS p, n / (n - 7) AS q, trunc(ts, 'MM') AS r, second(ts) AS t, n ^ 2 AS u FROM a

--query flink dialect=flink
SELECT time, GREATEST(n, 1) AS a, LEAST(1, n, time) AS b, SUBSTRING(s FROM 0 FOR 3) AS c, EXTRACT(DOW FROM ts) AS d, ROUND(x, 2) AS e, s LIKE '%\_%' AS f, EXTRACT(SECOND FROM ts) AS g FROM a

--query postgres dialect=postgres
SELECT time, s LIKE '%\_%' AS a, s ILIKE 'A\_%' AS b, substring(s, 0, 3) AS c, substring(s, n, 9) AS d, substr(s, -5) AS e, CAST(x AS INT) AS f, n ^ 2 AS g, extract(second FROM ts) AS h, extract(milliseconds FROM ts) AS i, greatest(n, 1) AS j FROM a

--plan
-- duckdb = a select time, s LIKE '%\_%' AS a, ROUND(x AWAY FROM ZERO) AS b, ROUND(x, 2 AWAY FROM ZERO) AS c, CAST(ROUND(x) AS int32) AS d, POWER(n, 2) AS e, POWER(n + 1, 2) AS f, SECOND(ts) AS g, SUBSTRING(s, 0, 3) AS h, CAST(2.5 AS int32) AS i
-- flink = a select time, CASE WHEN n IS NULL THEN NULL ELSE GREATEST(n, 1) END AS a, CASE WHEN n IS NULL THEN NULL WHEN time IS NULL THEN NULL ELSE LEAST(1, n, time) END AS b, SUBSTRING(s, 1, 3) AS c, DOW(ts) + 1 AS d, ROUND(x, 2 AS WRITTEN) AS e, s LIKE '%\_%' AS f, SECOND(ts) AS g
-- ours = a select time, REGEXP_MATCHES(s, '(?s)^.*_.*$') AS a, NOT (REGEXP_MATCHES(s, '(?s)^.*%.*$')) AS b, REGEXP_MATCHES(s, '(?si)^A_.*w.*$') AS c, s LIKE '%\_%' AS d, ROUND(x) AS e, CAST(x AS int32) AS f, n ^ 2 AS g, SUBSTRING(s, 0, 3) AS h, GREATEST(n, 1) AS i, DOW(ts) AS j, SECOND(ts) AS k, INITCAP(s) AS l
-- postgres = a select time, REGEXP_MATCHES(s, '(?s)^.*_.*$') AS a, REGEXP_MATCHES(s, '(?si)^A_.*$') AS b, CASE WHEN 0 IS NULL THEN NULL ELSE SUBSTRING(s, GREATEST(0, 1), GREATEST(3 - (GREATEST(0, 1) - 0), 0)) END AS c, CASE WHEN n IS NULL THEN NULL ELSE SUBSTRING(s, GREATEST(n, 1), GREATEST(9 - (GREATEST(n, 1) - n), 0)) END AS d, CASE WHEN -5 IS NULL THEN NULL ELSE SUBSTRING(s, GREATEST(-5, 1)) END AS e, CAST(ROUND(x) AS int32) AS f, POWER(n, 2) AS g, (EPOCH_US(ts) % 60000000) / 1000000.0e0 AS h, (EPOCH_US(ts) % 60000000) / 1000.0e0 AS i, GREATEST(n, 1) AS j
-- spark = a select time, REGEXP_REPLACE(s, '\d', '#', 'g') AS a, REGEXP_EXTRACT(s, '(\d)', 1) AS b, REGEXP_MATCHES(s, '(?s)^.*_.*$') AS c, 'it''s"' AS d, SUBSTRING(s, 1, 3) AS e, SUBSTRING(s, CASE WHEN (n * 0) = 0 THEN 1 ELSE n * 0 END, 2) AS f, ROUND(x, 2 AS WRITTEN) AS g, CAST(x AS int32) AS h, CAST(EPOCH_US(ts) // 1000000 AS int64) AS i, CAST(EPOCH(CAST(FROM_EPOCH_US(CAST(TRUNC(CAST(90 AS decimal(38, 0)) * 1000000) AS int64)) AS timestamp)) AS float64) AS j, DOW(ts) + 1 AS k, (EPOCH_US(ts) % 60000000) / 1000000.0e0 AS l, INITCAP(s, ' ') AS m, COALESCE(ISNAN(x), FALSE) AS o, CAST(ADD_MONTHS(ts, 1) AS date) AS p, n / CASE WHEN (n - 7) = 0 THEN NULL ELSE n - 7 END AS q, CAST(DATE_TRUNC('month', ts) AS date) AS r, SECOND(ts) AS t, n ^ 2 AS u

--input a
-- time | ts | x | n | s
-- 1 | 2024-03-30T22:00:50.500000 | 2.5 | 7 | 'a_1 wORD-two x'
-- 2 | 2024-03-31T22:00:00.000250 | -2.5 | NULL | 'aB1'
-- ~
-- 3 | 2024-04-01T01:02:03 | 0.125 | -3 | '50% 3'
-- 4 | 2024-04-01T01:02:04 | NULL | 0 | NULL

--expect ours
-- time int64 | a boolean | b boolean | c boolean | d boolean | e float64 | f int32 | g int64 | h string | i int64 | j int64 | k int64 | l string
-- 1 | true | true | true | false | 2.0 | 2 | 5 | 'a_' | 7 | 6 | 50 | 'A_1 Word-Two X'
-- 2 | false | true | false | false | -2.0 | -2 | NULL | 'aB' | 1 | 0 | 0 | 'Ab1'
-- 3 | false | false | false | false | 0.0 | 0 | -1 | '50' | 1 | 1 | 3 | '50% 3'
-- 4 | NULL | NULL | NULL | NULL | NULL | NULL | 2 | NULL | 1 | 1 | 4 | NULL

--duckdb ours
SELECT * FROM (SELECT time, contains(s, '_'), NOT contains(s, '%'), starts_with(lower(s), 'a_') , contains(s, '\'), round_even(x, 0), CAST(trunc(x) AS INT), xor(n, 2), left(s, 2), greatest(n, 1), dayofweek(ts), second(ts), CASE time WHEN 1 THEN 'A_1 Word-Two X' WHEN 2 THEN 'Ab1' WHEN 3 THEN '50% 3' END FROM a) AS t(time, a, b, c, d, e, f, g, h, i, j, k, l)

--expect duckdb
-- time int64 | a boolean | b float64 | c float64 | d int32 | e float64 | f float64 | g int64 | h string | i int32
-- 1 | false | 3.0 | 2.5 | 2 | 49.0 | 64.0 | 50 | 'a_' | 3
-- 2 | false | -3.0 | -2.5 | -2 | NULL | NULL | 0 | 'aB' | 3
-- 3 | false | 0.0 | 0.13 | 0 | 9.0 | 4.0 | 3 | '50' | 3
-- 4 | NULL | NULL | NULL | NULL | 0.0 | 1.0 | 4 | NULL | 3

--duckdb duckdb
same

--expect spark
-- time int64 | a string | b string | c boolean | d string | e string | f string | g float64 | h int32 | i int64 | j float64 | k int64 | l float64 | m string | o boolean | p date | q float64 | r date | t int64 | u int64
-- 1 | 'a_# wORD-two x' | '1' | true | 'it''s"' | 'a_1' | 'a_' | 2.5 | 2 | 1711836050 | 90.0 | 7 | 50.5 | 'A_1 Word-two X' | false | 2024-04-30 | NULL | 2024-03-01 | 50 | 5
-- 2 | 'aB#' | '1' | false | 'it''s"' | 'aB1' | NULL | -2.5 | -2 | 1711922400 | 90.0 | 1 | 0.00025 | 'Ab1' | false | 2024-04-30 | NULL | 2024-03-01 | 0 | NULL
-- 3 | '##% #' | '5' | false | 'it''s"' | '50%' | '50' | 0.13 | 0 | 1711933323 | 90.0 | 2 | 3.0 | '50% 3' | false | 2024-05-01 | 0.3 | 2024-04-01 | 3 | -1
-- 4 | NULL | NULL | NULL | 'it''s"' | NULL | NULL | NULL | NULL | 1711933324 | 90.0 | 2 | 4.0 | NULL | false | 2024-05-01 | -0.0 | 2024-04-01 | 4 | 2

--duckdb spark
SELECT * FROM (SELECT time, regexp_replace(s, '\d', '#', 'g'), regexp_extract(s, '(\d)', 1), contains(s, '_'), 'it''s' || '"', left(s, 3), CASE WHEN n IS NULL THEN NULL ELSE left(s, 2) END, round(x, 2), CAST(trunc(x) AS INT), epoch_us(ts) // 1000000, 90.0::DOUBLE, dayofweek(ts) + 1, extract(microsecond FROM ts) / 1e6, CASE time WHEN 1 THEN 'A_1 Word-two X' WHEN 2 THEN 'Ab1' WHEN 3 THEN '50% 3' END, coalesce(isnan(x), false), (ts::DATE + INTERVAL 1 MONTH)::DATE, n / nullif(n - 7, 0), date_trunc('month', ts)::DATE, second(ts), xor(n, 2) FROM a) AS t(time, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, t, u)

--expect flink
-- time int64 | a int64 | b int64 | c string | d int64 | e float64 | f boolean | g int64
-- 1 | 7 | 1 | 'a_1' | 7 | 2.5 | false | 50
-- 2 | NULL | NULL | 'aB1' | 1 | -2.5 | false | 0
-- 3 | 1 | -3 | '50%' | 2 | 0.13 | false | 3
-- 4 | 1 | 0 | NULL | 2 | NULL | NULL | 4

--duckdb flink
SELECT * FROM (SELECT time, CASE WHEN n IS NULL THEN NULL ELSE greatest(n, 1) END, CASE WHEN n IS NULL THEN NULL ELSE least(1, n, time) END, left(s, 3), dayofweek(ts) + 1, round(x, 2), contains(s, '\'), second(ts) FROM a) AS t(time, a, b, c, d, e, f, g)

--expect postgres
-- time int64 | a boolean | b boolean | c string | d string | e string | f int32 | g float64 | h float64 | i float64 | j int64
-- 1 | true | true | 'a_' | 'RD-two x' | 'a_1 wORD-two x' | 2 | 49.0 | 50.5 | 50500.0 | 7
-- 2 | false | false | 'aB' | NULL | 'aB1' | -2 | NULL | 0.00025 | 0.25 | 1
-- 3 | false | false | '50' | '50% 3' | '50% 3' | 0 | 9.0 | 3.0 | 3000.0 | 1
-- 4 | NULL | NULL | NULL | NULL | NULL | NULL | 0.0 | 4.0 | 4000.0 | 1

--duckdb postgres
SELECT * FROM (SELECT time, contains(s, '_'), starts_with(lower(s), 'a_'), left(s, 2), CASE time WHEN 1 THEN substring(s, 7, 9) WHEN 3 THEN left(s, 5) END, s, CAST(x AS INT), n ^ 2, extract(microsecond FROM ts) / 1e6, extract(microsecond FROM ts) / 1e3, greatest(n, 1) FROM a) AS t(time, a, b, c, d, e, f, g, h, i, j)
