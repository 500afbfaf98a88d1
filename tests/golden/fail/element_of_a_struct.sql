-- A field is told by its name.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT p[1] AS x FROM doc

--fail= […] takes an element of a list or a field of a struct, but p is struct(a int64, b
