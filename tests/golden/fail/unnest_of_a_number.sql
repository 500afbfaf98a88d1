-- UNNEST is for lists.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT unnest(id) AS x FROM doc

--fail= UNNEST(id) needs a list, but this is int64.
