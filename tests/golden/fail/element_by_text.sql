-- An element is told by its number.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT xs['a'] AS x FROM doc

--fail= an element of a list is told by its number, got 'a'.
