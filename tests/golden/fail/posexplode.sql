-- POSEXPLODE is refused by name.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q dialect=spark
SELECT posexplode(xs) AS x FROM doc

--fail= POSEXPLODE is not available: write CROSS JOIN UNNEST(xs) WITH ORDINALITY AS u(x, n).
