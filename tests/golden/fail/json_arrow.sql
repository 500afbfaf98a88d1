-- -> gives JSON, which has no type.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT j -> 'a' AS x FROM doc

--fail= -> gives JSON, which has no type here: write ->> for the text of a value, as in j -> 'a'
