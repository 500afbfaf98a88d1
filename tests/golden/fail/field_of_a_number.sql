-- A number has no fields.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT id.a FROM doc

--fail= id is int64, which has no field 'a'.
