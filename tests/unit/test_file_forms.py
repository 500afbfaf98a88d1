"""Files as other programs write them: separators, marks of NULL, encodings, compression, other columns."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.orc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session
from anabranch.errors import AnabranchError, SourceError
from anabranch.sources.json_array import in_lines
from anabranch.spec import read_spec

FLIGHTS = """year,month,day,dep_time,dep_delay,carrier,tailnum,time_hour
2013,1,1,517,2,UA,N14228,2013-01-01T10:00:00Z
2013,1,1,NA,NA,AA,NA,2013-01-01T10:00:00Z
2013,1,1,542,-3,"NA",N619AA,2013-01-01T11:00:00Z
"""


def rows_of(path: Path, ordered: str, select: str = "*", **options: Any) -> list[dict[str, Any]]:
    """What a query that takes the rows as they are gives."""
    with Session.in_process() as session:
        session.stream("s", path=path, ordered=ordered, **options)
        session.query("q", f"SELECT {select} FROM s")
        run = session.start(sinks={"q": "memory"})
        assert run.await_termination(60)
        return run.results("q").to_dicts()


def test_flights_with_na_for_what_is_not_known(tmp_path: Path) -> None:
    """As in nycflights13; a quoted NA is a text, here an airline's."""
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    read = rows_of(tmp_path / "flights.csv", "time_hour", nulls="NA")
    with duckdb.connect() as oracle:
        path = tmp_path / "flights.csv"
        expected = oracle.sql(
            f"SELECT * FROM read_csv('{path}', nullstr=['NA', ''], allow_quoted_nulls=false)"
        ).pl()
    assert [list(row.values())[:-1] for row in read] == [list(row)[:-1] for row in expected.rows()]
    assert read[1]["dep_delay"] is None
    assert read[2]["carrier"] == "NA"


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "t;price;what\n1;3,25;tea\n2;-1.000,5;x\n".replace("1.000", "1000")
    )
    read = rows_of(tmp_path, "t", delimiter=";", decimal=",")
    assert read == [
        {"t": 1, "price": 3.25, "what": "tea"}, {"t": 2, "price": -1000.5, "what": "x"},
    ]  # fmt: skip


def test_exact_decimals_with_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t;price\n1;0,1\n2;0,2\n")
    read = rows_of(
        tmp_path,
        "t",
        "price * 3 AS p",
        delimiter=";",
        decimal=",",
        types={"price": "decimal(9, 2)"},
    )
    assert [str(row["p"]) for row in read] == ["0.30", "0.60"]


PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda text: pa.compress(text, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", [*PACK, "misnamed"])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_compressed_texts_are_told_by_their_content(
    tmp_path: Path, ending: str, format: str
) -> None:
    text = b"t,v\n1,2\n3,4\n" if format == "csv" else b'{"t": 1, "v": 2}\n{"t": 3, "v": 4}\n'
    pack = PACK.get(ending, gzip.compress)
    name = f"a.{format}" if ending == "misnamed" else f"a.{format}.{ending}"
    (tmp_path / name).write_bytes(pack(text))
    assert rows_of(tmp_path, "t") == [{"t": 1, "v": 2}, {"t": 3, "v": 4}]


def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"t,v\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(5000)))
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"a\.csv\.gz"):
        rows_of(tmp_path, "t", schema={"t": "int64", "v": "int64"})


def test_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("t,name\n1,Müller\n".encode("latin-1"))
    assert rows_of(tmp_path, "t", encoding="latin-1") == [{"t": 1, "name": "Müller"}]
    with pytest.raises(SourceError, match="UTF8"):
        rows_of(tmp_path, "t", schema={"t": "int64", "name": "string"})


def test_times_as_people_write_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,day\n01.03.2026 22:15,24.12.2025 00:00\n02.03.2026 07:00,\n")
    read = rows_of(tmp_path, "t", time_format="%d.%m.%Y %H:%M", types="t timestamp, day date")
    assert read == [
        {"t": dt.datetime(2026, 3, 1, 22, 15), "day": dt.date(2025, 12, 24)},
        {"t": dt.datetime(2026, 3, 2, 7, 0), "day": None},
    ]
    (tmp_path / "a.csv").write_text("t,day\nnever,\n")
    with pytest.raises(SourceError, match="'never' is no time of the form %d"):
        rows_of(tmp_path, "t", time_format="%d.%m.%Y %H:%M", types="t timestamp, day date")


def test_times_in_json_by_a_format(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"t": "2026/03/01 22h00", "v": 1}\n')
    read = rows_of(tmp_path, "t", time_format="%Y/%m/%d %Hh%M", types={"t": "timestamp"})
    assert read == [{"t": dt.datetime(2026, 3, 1, 22), "v": 1}]


def test_files_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\n2,y\n")
    assert rows_of(tmp_path, "column0", header=False) == [
        {"column0": 1, "column1": "x"}, {"column0": 2, "column1": "y"},
    ]  # fmt: skip
    named = rows_of(tmp_path, "t", header=False, schema={"t": "int64", "name": "string"})
    assert named == [{"t": 1, "name": "x"}, {"t": 2, "name": "y"}]
    with pytest.raises(SourceError, match="2 columns and no header, but the schema has 1"):
        rows_of(tmp_path, "t", header=False, schema={"t": "int64"})


def test_comments_quotes_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("# made by hand\nt\tsaid\n1\t'a\n#b'\n# more\n2\t'it''s'\n")
    assert rows_of(tmp_path, "t", comment="#", quote="'") == [
        {"t": 1, "said": "a\n#b"}, {"t": 2, "said": "it's"},
    ]  # fmt: skip
    (tmp_path / "a.tsv").write_text('t\tsaid\n1\t5" pipe\n')
    assert rows_of(tmp_path, "t", quote=None) == [{"t": 1, "said": '5" pipe'}]


def test_comments_with_quotes_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        't,s\n# a 5" disk\n1,a\n# another\n2,"x\n# no comment"\n# 6"\n3,c\n'
    )
    read = rows_of(tmp_path, "t", comment="#")
    assert [row["s"] for row in read] == ["a", "x\n# no comment", "c"]
    (tmp_path / "a.csv").write_text('t,s\n1,"a \\" b"\n# gone\n2,c\n')
    read = rows_of(tmp_path, "t", comment="#", escape="\\")
    assert [row["s"] for row in read] == ['a " b', "c"]


@given(
    objects=st.lists(
        st.fixed_dictionaries({"t": st.integers(0, 2**62), "s": st.text(max_size=8)}),
        min_size=1,
        max_size=6,
    ),
    indent=st.sampled_from([None, 0, 2]),
)
def test_arrays_and_lines_are_the_same(objects: list[dict[str, Any]], indent: int | None) -> None:
    array = in_lines(pa.py_buffer(json.dumps(objects, indent=indent).encode()))
    lines = [json.loads(line) for line in array.to_pybytes().splitlines() if line.strip()]
    assert lines == objects


def test_numbers_in_an_array_are_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '[{"t": 1, "v": "12345678901234567.89"}, {"t": 9007199254740993, "v": "1"}]'
    )
    read = rows_of(tmp_path, "t", types={"v": "decimal(20, 2)"})
    assert [(row["t"], str(row["v"])) for row in read] == [
        (1, "12345678901234567.89"), (9007199254740993, "1.00"),
    ]  # fmt: skip
    (tmp_path / "a.json").write_text('[{"t": 1}, {"t": 2}')
    with pytest.raises(SourceError, match="does not end"):
        rows_of(tmp_path, "t", schema={"t": "int64"})


def test_an_array_of_objects_is_json_too(tmp_path: Path) -> None:
    objects = [{"t": 1, "v": "a"}, {"t": 2}, {"t": 3, "v": None}]
    (tmp_path / "a.json").write_text(json.dumps(objects, indent=1))
    assert [row["v"] for row in rows_of(tmp_path, "t")] == ["a", None, None]


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv", "json", "orc"])
def test_columns_that_come_and_go(tmp_path: Path, format: str) -> None:
    """A later file lacks a column and has another one: nobody reads it, or it is NULL, as asked."""
    frames = [pl.DataFrame({"t": [1], "a": ["x"], "b": [7]}), pl.DataFrame({"t": [2], "c": [9]})]
    for number, frame in enumerate(frames):
        path = tmp_path / f"{number}.{format}"
        match format:
            case "orc":
                pa.orc.write_table(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), path)
            case "arrow":
                frame.write_ipc(path)
            case "json":
                frame.write_ndjson(path)
            case _:
                getattr(frame, f"write_{format}")(path)
    assert rows_of(tmp_path, "t", "t", file_order="name") == [{"t": 1}, {"t": 2}]
    read = rows_of(tmp_path, "t", file_order="name", missing="null")
    assert read == [{"t": 1, "a": "x", "b": 7}, {"t": 2, "a": None, "b": None}]
    with pytest.raises(SourceError, match="column 'a' is missing"):
        rows_of(tmp_path, "t", "t, a", file_order="name")


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_columns_are_renamed(tmp_path: Path, format: str) -> None:
    frame = pl.DataFrame({"Event Time": [1, 2], "*": [3, 4]})
    path = tmp_path / f"a.{format}"
    frame.write_ndjson(path) if format == "json" else getattr(frame, f"write_{format}")(path)
    read = rows_of(tmp_path, "t", rename={"Event Time": "t", "*": "all_of_it"})
    assert read == [{"t": 1, "all_of_it": 3}, {"t": 2, "all_of_it": 4}]


def test_avro(tmp_path: Path) -> None:
    frame = pl.DataFrame({"t": [1, 2], "name": ["a", None]})
    frame.write_avro(tmp_path / "a.avro")
    assert rows_of(tmp_path, "t") == frame.to_dicts()


def test_nanoseconds_as_pandas_writes_them(tmp_path: Path) -> None:
    times = pl.Series("t", [dt.datetime(2026, 1, 1, 12, 0, 0, 7)], dtype=pl.Datetime("ns"))
    pl.DataFrame([times]).write_parquet(tmp_path / "a.parquet")
    assert rows_of(tmp_path, "t") == [{"t": dt.datetime(2026, 1, 1, 12, 0, 0, 7)}]


def test_bad_lines_of_another_form_go_to_the_dead_letters(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = "1;3,5;a\n2;NA;b\nx;1,0;c\n4;2,25;d;e\n5;0,5;f\n"
    (tmp_path / "in" / "a.csv").write_bytes(gzip.compress(text.encode()))
    with Session.in_process() as session:
        session.stream(
            "s", path=tmp_path / "in", ordered="t", on_bad="dead-letter", header=False, nulls="NA",
            delimiter=";", decimal=",", schema={"t": "int64", "v": "double", "w": "string"},
        )  # fmt: skip
        session.query("q", "SELECT t, v, w FROM s")
        run = session.start(sinks={"q": "memory"}, dead_letter=str(tmp_path / "dead"))
        assert run.await_termination(60)
        assert run.results("q").rows() == [(1, 3.5, "a"), (2, None, "b"), (5, 0.5, "f")]
    letters = [
        json.loads(line)
        for path in sorted((tmp_path / "dead").rglob("*lines*"))
        for line in path.read_text().splitlines()
    ]
    assert [letter["row"] for letter in letters] == [3, 4]


def test_the_options_in_sql_and_yaml(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("T;v\n1;NA\n2;1,5\n")
    sql = tmp_path / "a.sql"
    sql.write_text(f"""
        CREATE STREAM s ORDERED BY T WITH (path = '{tmp_path}/in', delimiter = ';', decimal = ',',
                                           nulls = 'NA', types = 'T bigint, v decimal(5, 1)');
        CREATE QUERY q AS SELECT T, v FROM s;""")
    yml = tmp_path / "a.yml"
    yml.write_text(f"""
streams:
  s: {{path: {tmp_path}/in, ordered: t, delimiter: ';', decimal: ',', nulls: [NA, x],
      rename: {{T: t}}, types: {{v: 'decimal(5, 1)'}}}}
queries:
  q: SELECT t, v FROM s
""")
    for file in (sql, yml):
        session = read_spec(file).session(in_process=True)
        run = session.start(sinks={"q": "memory"})
        assert run.await_termination(60)
        assert [str(row[1]) for row in run.results("q").rows()] == ["None", "1.5"]
    sql.write_text("CREATE STREAM s ORDERED BY T WITH (path = 'x', delimeter = ';');")
    with pytest.raises(AnabranchError, match="Did you mean 'delimiter'"):
        read_spec(sql)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimeter": ";"}, "files have no option 'delimeter'. Did you mean 'delimiter'"),
        ({"delimiter": ";;"}, "delimiter is ';;'; expected one character"),
        ({"decimal": ","}, "decimal and delimiter are both ','"),
        ({"encoding": "klingon"}, "there is no encoding 'klingon'"),
        ({"header": "no"}, "header is 'no'; expected true or false"),
        ({"nulls": 3}, "nulls is 3; expected a text or several"),
        ({"missing": "ignore"}, "missing is 'ignore'; expected 'stop' or 'null'"),
        ({"rename": {"t": "x", "v": "x"}}, "rename calls several columns 'x'"),
        ({"types": {"w": "int64"}}, "types= has 'w', which is not a column"),
        ({"types": "t"}, "expected columns with their types"),
        ({"types": {"v": "int65"}}, "there is no type 'int65'"),
        ({"time_format": "%H"}, "'%H', which is no format of times"),
        ({"comment": ""}, "comment is ''; expected a text"),
    ],
)
def test_what_files_cannot_be_told(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    (tmp_path / "a.csv").write_text("t,v\n1,2\n")
    with pytest.raises(AnabranchError) as caught:
        rows_of(tmp_path, "t", **options)
    assert words in str(caught.value)


def test_options_of_text_say_nothing_about_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"t": [1]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="delimiter= is for CSV files; these are parquet"):
        rows_of(tmp_path, "t", delimiter=";")


@pytest.mark.parametrize("rows", ["1;3,25", "1;3"])
def test_another_delimiter_is_seen_in_the_names_of_columns(tmp_path: Path, rows: str) -> None:
    (tmp_path / "a.csv").write_text(f"t;price\n{rows}\n")
    with pytest.raises(AnabranchError) as told:
        rows_of(tmp_path, "t")
    assert str(told.value).endswith("parted by ';': give the stream delimiter=';'.")


@pytest.mark.parametrize(("form", "codec"), [({}, "utf-8"), ({"encoding": "ascii"}, "ascii")])
def test_a_text_in_another_encoding_is_told_with_the_option(
    tmp_path: Path, form: dict[str, Any], codec: str
) -> None:
    (tmp_path / "a.csv").write_bytes("t,größe\n1,2\n".encode("latin-1"))
    with pytest.raises(SourceError, match=f"no text in {codec}: .* encoding='latin-1', or mend"):
        rows_of(tmp_path, "t", **form)
    assert rows_of(tmp_path, "t", encoding="latin-1") == [{"t": 1, "größe": 2}]


def test_texts_that_were_meant_as_numbers_or_times_are_told_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,price,at\n1,3,01.03.2026 08:00\n2,NA,01.03.2026 08:10\n")
    with pytest.raises(AnabranchError, match=r"price is string\. CAST it; or, .* nulls='NA'"):
        rows_of(tmp_path, "t", "SUM(price) AS p, t/60 AS tb FROM s GROUP BY tb --")
    with pytest.raises(AnabranchError, match=r"types=\{'at': 'timestamp'\} and time_format="):
        rows_of(tmp_path, "at")
