-- A field that is not there.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT p.c FROM doc

--fail= p has no field 'c'. Existing: a, b.
