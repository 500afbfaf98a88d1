-- ->> reads a text.

--stream doc: ts timestamp, id int64, p struct(a int64, b string), xs list(int64), j string; ordered by ts

--query q
SELECT xs ->> 'a' AS x FROM doc

--fail= ->> reads JSON in a text, but xs is list(int64).
