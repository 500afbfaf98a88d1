"""Random SQL over random streams against DuckDB: `anabranch fuzz`.

`world.py` draws streams and how they are run, `case.py` queries as two texts, one for us and one for
DuckDB; `judge.py` runs cases and compares, `many.py` runs many, `shrink.py` makes a failure small.
"""
