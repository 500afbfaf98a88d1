-- A struct is no key.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT p, count(*) AS n FROM doc GROUP BY TUMBLE(ts, '1 minute'), p

--fail= Query 'q' groups by 'p', which is struct(a int64, b string): such a value
