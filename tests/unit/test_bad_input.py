"""Input that does not fit its stream, with on_bad="stop": the message, and what is left afterwards.

Every case breaks file 2 of four. The run must stop there with the reason, show what epochs 0 and 1 gave,
leave nothing of epoch 2, and give exactly the right result once the file is mended.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from anabranch import Session, col, count, tumble
from anabranch.errors import LanguageError, PlanningError, SourceError
from anabranch.sinks.files import FileSink
from helpers import FORMATS, SCHEMA, Stage, plain, read_results, sample, source_metrics

GOOD = [sample(number) for number in range(4)]


def stop_at_file_2(stage: Stage, content: pl.DataFrame | bytes | str, *words: str) -> str:
    """Runs with a broken file 2, checks message and aftermath, mends it, checks the result."""
    for number in range(4):
        stage.write(number, content if number == 2 else None)
    message = stage.refused(SourceError)
    for word in ("Stream 'rows'", str(stage.path(2)), "Mend or remove the file", *words):
        assert word in message
    stage.check_whole(last_epoch=1)
    # Epoch 1 brought the watermark to 19: of windows 0 and 1 only the first is closed
    assert stage.results() == [row for row in stage.expected(*GOOD) if row[0] == 0]
    # It stops there again, and a second try leaves no more behind than the first
    assert stage.refused(SourceError) == message
    stage.check_whole(last_epoch=1)
    stage.write(2)
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)
    return message


def text(format: str, rows: pl.DataFrame) -> str:
    return rows.write_csv() if format == "csv" else rows.write_ndjson()


@pytest.mark.parametrize("format", FORMATS)
def test_missing_column(tmp_path: Path, format: str) -> None:
    stage = Stage(tmp_path, format)
    broken = sample(2).drop("v").with_columns(value=pl.lit(1))
    content = text(format, broken) if format in ("csv", "json") else broken
    stop_at_file_2(
        stage, content, "column 'v' is missing", "expected Int64", "Existing: k, time, value"
    )


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (pl.String, "String"),
        (pl.Float64, "Float64"),
        (pl.UInt64, "UInt64"),
        (pl.Boolean, "Boolean"),
    ],
)
def test_changed_type(tmp_path: Path, format: str, kind: pl.DataType, shown: str) -> None:
    broken = sample(2).with_columns(pl.col("v").cast(kind))
    stop_at_file_2(
        Stage(tmp_path, format), broken, "column 'v' has the wrong type", "expected Int64",
        f"the file has {shown}",
    )  # fmt: skip


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", [pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32])
def test_a_narrower_type_is_widened_without_loss(
    tmp_path: Path, format: str, kind: type[pl.DataType]
) -> None:
    stage = Stage(tmp_path, format)
    for number in range(4):
        stage.write(number, sample(number).with_columns(pl.col("v").cast(kind)))
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", [pl.Float32, pl.Int32, pl.UInt16, pl.Null])
def test_what_fits_into_a_float(tmp_path: Path, format: str, kind: type[pl.DataType]) -> None:
    stage = Stage(tmp_path, format)
    frames = [rows.with_columns(v=None) if kind is pl.Null else rows for rows in GOOD]
    for number, rows in enumerate(frames):
        stage.write(number, rows.with_columns(pl.col("v").cast(kind)))
    session = stage.session(schema={"time": "int64", "k": "string", "v": "float64"})
    stage.finish(session)
    assert stage.results() == stage.expected(
        *(r.with_columns(pl.col("v").cast(float)) for r in frames)
    )


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("unit", "more", "fits"),
    [("ms", 0, True), ("us", 0, True), ("ns", 0, True), ("ns", 1000, True), ("ns", 1, False)],
)
def test_which_timestamps_fit(
    tmp_path: Path, format: str, unit: str, more: int, fits: bool
) -> None:
    """Stored as microseconds: milliseconds fit, nanoseconds if they are whole microseconds."""
    stage = Stage(tmp_path, format)
    for number in range(2):
        seconds = pl.from_epoch("time", time_unit="s").dt.cast_time_unit(unit)  # type: ignore[arg-type]
        moved = (seconds.to_physical() + more * (pl.int_range(pl.len()) == 3)).cast(
            pl.Datetime(unit)  # type: ignore[arg-type]
        )
        stage.write(number, sample(number).with_columns(time=moved))
    session = Session.in_process(settings={"fsync": False})
    schema = {"time": "timestamp", "k": "string", "v": "int64"}
    rows = session.stream("rows", path=stage.input, format=format, schema=schema, ordered="time")
    session.query("n", rows.group_by(tumble("10 seconds")).agg(count().alias("n")))
    if fits:
        run = stage.finish(session, sinks={"n": "memory"})
        assert run.results("n")["n"].to_list() == [40, 40]
    else:
        message = stage.refused(SourceError, session, sinks={"n": "memory"})
        assert str(stage.path(0)) in message
        assert "column 'time' has 1 times that are no whole microseconds, as 1970-01-01" in message


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_the_advice_for_times_in_nanoseconds_works(tmp_path: Path, zone: str | None) -> None:
    times = pl.Series("t", [dt.datetime(2026, 1, 1)], dtype=pl.Datetime("ns", zone))
    pl.DataFrame([times]).write_parquet(tmp_path / "a.parquet")
    advised = pl.Schema({"t": pl.Datetime("us", zone)})
    words = "pl.Datetime\\('us', 'Europe/Berlin'\\)" if zone else 'give schema= with "timestamp"'
    session = Session.in_process()
    with pytest.raises(LanguageError, match=words):
        session.stream("s", path=tmp_path, ordered="t", schema=pl.Schema([("t", times.dtype)]))
    given = advised if zone else {"t": "timestamp"}
    session.stream("s", path=tmp_path, ordered="t", schema=given)
    session.query("q", "SELECT t FROM s")
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(30)
    assert run.results("q")["t"].equals(times.cast(advised["t"]))


@pytest.mark.parametrize("name", ["", "*", "^a.*$"])
def test_a_column_that_queries_cannot_name_is_refused(tmp_path: Path, name: str) -> None:
    pl.DataFrame({"t": [1], name: [2]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceError) as caught:
        Session.in_process().stream("s", path=tmp_path, ordered="t")
    assert f"a column is called '{name}', which queries cannot name" in str(caught.value)
    session = Session.in_process()
    session.stream("s", path=tmp_path, ordered="t", schema={"t": "int64"})
    session.query("q", "SELECT t FROM s")
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(30)
    assert run.results("q").rows() == [(1,)]


@pytest.mark.parametrize("on_bad", ["stop", "dead-letter"])
def test_a_column_that_a_file_has_twice_is_refused(tmp_path: Path, on_bad: str) -> None:
    stage = Stage(tmp_path, "csv")
    stage.write(0, "time,k,v,v\n1,a,2,3\n")
    session = stage.session(on_bad=on_bad)
    if on_bad == "stop":
        message = stage.refused(SourceError, session)
        assert f"file '{stage.path(0)}': 2 columns are called 'v'" in message
    else:
        run = stage.finish(session, dead_letter=stage.dead)
        assert source_metrics(run)["badFilesTotal"] == 1
    stage.write(1, "time,k,other,v,other\n1,a,2,3,4\n")
    if on_bad == "stop":
        stage.path(0).unlink()
        stage.finish()
        assert len(stage.results()) == 1, "what the stream has no use for may be there twice"


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("kind", "number"), [("float64", "1e999"), ("float64", "-1e999"), ("float32", "1e39")]
)
def test_numbers_beyond_all_floats_are_bad_in_every_text_format(
    tmp_path: Path, format: str, kind: str, number: str
) -> None:
    infinity = "Infinity"
    lines = [(1, number), (2, infinity), (3, f"-{infinity}"), (4, "1.5")]
    if format == "csv":
        content = "t,v\n" + "".join(f"{t},{v}\n" for t, v in lines)
    else:
        content = "".join(f'{{"t": {t}, "v": {v}}}\n' for t, v in lines)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{format}").write_text(content)
    session = Session.in_process()
    schema = {"t": "int64", "v": kind}
    session.stream("s", path=tmp_path / "in", schema=schema, ordered="t", on_bad="dead-letter")
    session.query("q", "SELECT t, v FROM s")
    run = session.start(sinks={"q": "memory"}, dead_letter=tmp_path / "dead")
    assert run.await_termination(30)
    assert run.results("q").rows() == [(2, math.inf), (3, -math.inf), (4, 1.5)]
    assert source_metrics(run)["badRowsTotal"] == 1


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("kept", [0.98, 0.5, 0.01])
def test_truncated_file(tmp_path: Path, format: str, kept: float) -> None:
    stage = Stage(tmp_path, format)
    whole = stage.write(2).read_bytes()
    stop_at_file_2(stage, whole[: int(len(whole) * kept)], f"cannot be read as {format}")


@pytest.mark.parametrize("cut", [8, 16, "a batch"])
def test_truncated_arrow_stream(tmp_path: Path, cut: int | str) -> None:
    """An Arrow stream has no footer: one that ends between two batches looks like a shorter one."""
    rows, target = sample(2).to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(target, rows.schema) as writer:
        writer.write_table(rows.slice(0, 20))
        before = target.tell()
        writer.write_table(rows.slice(20))
    whole = target.getvalue().to_pybytes()
    content = whole[:before] if cut == "a batch" else whole[: -int(cut)]
    stage = Stage(tmp_path, "arrow")
    stop_at_file_2(stage, content, "cannot be read as arrow")
    (tmp_path / "whole").mkdir()
    stage = Stage(tmp_path / "whole", "arrow")
    for number in range(4):
        stage.write(number, whole if number == 2 else None)
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("25,key-1", ("Row #22", "Expected 3 columns, got 2", "25,key-1")),
        ("25,key-1,7,8", ("Row #22", "Expected 3 columns, got 4")),
        ("25,key-1,seven", ("Row #22", "int64", "seven")),
        ("soon,key-1,7", ("Row #22", "int64", "soon")),
    ],
    ids=["too few fields", "too many fields", "wrong type", "wrong type of time"],
)
def test_bad_csv_line(tmp_path: Path, line: str, words: tuple[str, ...]) -> None:
    lines = text("csv", sample(2)).splitlines()
    lines[21] = line
    message = stop_at_file_2(Stage(tmp_path, "csv"), "\n".join(lines) + "\n", *words)
    assert "cannot be read as csv" in message


@pytest.mark.parametrize(
    "line",
    ['{"time": 25, "k": "key-1", "v"', '{"time": 25, "k": "key-1", "v": "seven"}', "[25, 7]"],
    ids=["cut off", "wrong type", "no object"],
)
def test_bad_json_line(tmp_path: Path, line: str) -> None:
    lines = text("json", sample(2)).splitlines()
    lines[20] = line
    stop_at_file_2(
        Stage(tmp_path, "json"), "\n".join(lines), "cannot be read as json", "JSON parse"
    )


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_zero_byte_file_of_a_binary_format_is_broken(tmp_path: Path, format: str) -> None:
    stop_at_file_2(Stage(tmp_path, format), b"", f"cannot be read as {format}")


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_zero_byte_file_of_a_text_format_has_no_rows(
    tmp_path: Path, format: str, content: bytes
) -> None:
    stage = Stage(tmp_path, format)
    for number in range(4):
        stage.write(number, content if number == 2 else None)
    run = stage.finish()
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], GOOD[3])
    assert [progress["numInputRows"] for progress in run.recent_progress] == [40, 40, 0, 40, 0]


@pytest.mark.parametrize("format", FORMATS)
def test_file_with_zero_rows(tmp_path: Path, format: str) -> None:
    stage = Stage(tmp_path, format)
    for number in range(4):
        stage.write(number, sample(2).clear() if number in (0, 2) else None)
    run = stage.finish()
    assert stage.results() == stage.expected(GOOD[1], GOOD[3])
    assert [progress["numInputRows"] for progress in run.recent_progress] == [0, 40, 0, 40, 0]
    assert stage.taken() == [stage.path(number).name for number in range(4)]


@pytest.mark.parametrize("format", FORMATS)
def test_null_keys_form_a_group(tmp_path: Path, format: str) -> None:
    stage = Stage(tmp_path, format)
    for number in range(4):
        stage.write(number)
    stage.finish()
    of_null = [row for row in stage.results() if row[1] is None]
    assert of_null == [row for row in stage.expected(*GOOD) if row[1] is None]
    assert len(of_null) == 4


@pytest.mark.parametrize("format", FORMATS)
def test_null_in_the_ordered_attribute(tmp_path: Path, format: str) -> None:
    broken = sample(2).with_columns(
        time=pl.when(pl.int_range(pl.len()) % 20 == 3).then(None).otherwise("time")
    )
    stage = Stage(tmp_path, format)
    stop_at_file_2(stage, broken, "2 row(s) have NULL in the ordered attribute 'time'")


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (pl.Array(pl.Int64, 2), "Array"),
        (pl.List(pl.Array(pl.Int64, 2)), "List(Array"),
        (pl.Duration("us"), "Duration"),
    ],
)
def test_a_type_that_queries_cannot_work_with(
    tmp_path: Path, kind: pl.DataType, shown: str
) -> None:
    session = Session.in_process()
    schema = pl.Schema({"time": pl.Int64(), "tags": kind})
    with pytest.raises(SourceError) as caught:
        session.stream("rows", path=tmp_path, format="parquet", schema=schema, ordered="time")
    for word in (
        "Stream 'rows', column 'tags'",
        shown,
        "expected integers",
        "Leave the column out",
    ):
        assert word in str(caught.value)


QUERIES: dict[str, Callable[..., object]] = {
    "where": lambda rows: rows.where(col("tiem") > 3),
    "select": lambda rows: rows.select("tiem"),
    "group by": lambda rows: rows.group_by((col("time") // 10).alias("tb"), "tiem").agg(count()),
    "aggregate": lambda rows: rows.group_by((col("time") // 10).alias("tb")).agg(count("tiem")),
    "history": lambda rows: rows.history("tiem", rows=2).agg(count().alias("n")),
}


@pytest.mark.parametrize("where", QUERIES)
def test_unknown_column(tmp_path: Path, where: str) -> None:
    session = Session.in_process()
    rows = session.stream("rows", path=tmp_path, format="csv", schema=SCHEMA, ordered="time")
    with pytest.raises(LanguageError) as caught:
        QUERIES[where](rows)
    for word in ("'tiem'", "Did you mean 'time'?", "Existing: k, time, v"):
        assert word in str(caught.value)


def test_unknown_stream(tmp_path: Path) -> None:
    session = Stage(tmp_path).session()
    with pytest.raises(LanguageError) as caught:
        session.from_stream("row")
    assert "no stream or query 'row'" in str(caught.value)
    assert "Did you mean 'rows'? Existing: rows, sums" in str(caught.value)
    with pytest.raises(PlanningError, match=r"no query 'sum'. Did you mean 'sums'?"):
        session.start(sinks={"sum": "out"})


def test_unknown_ordered_attribute(tmp_path: Path) -> None:
    session = Session.in_process()
    with pytest.raises(LanguageError, match=r"'tiem' is not a column. Did you mean 'time'?"):
        session.stream("rows", path=tmp_path, format="csv", schema=SCHEMA, ordered="tiem")
    with pytest.raises(
        LanguageError, match="'k' is string; expected an integer, a date or a timestamp"
    ):
        session.stream("rows", path=tmp_path, format="csv", schema=SCHEMA, ordered="k")


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_vanishes_before_it_is_read(tmp_path: Path, format: str) -> None:
    # Else it would have been read while the epoch before was under way
    stage = Stage(tmp_path, format, settings={"overlap": False})
    for number in range(4):
        stage.write(number)

    def vanish(step: str, epoch: int) -> None:
        if (step, epoch) == ("before-tasks", 2):
            stage.path(2).unlink()

    message = stage.refused(SourceError, on_step=vanish)
    assert str(stage.path(2)) in message
    assert "No such file" in message
    stage.check_whole(last_epoch=1)
    stage.finish()
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], GOOD[3])


@pytest.mark.parametrize("format", FORMATS)
def test_all_formats_give_the_same_results(tmp_path: Path, format: str) -> None:
    """As sources and as sinks: what a run writes in a format is read again as it was."""
    first, second = Stage(tmp_path / "first", format), Stage(tmp_path / "second", format)
    awkward = pl.DataFrame(
        {
            "time": [45, 46, 47, 48],
            "k": ["", None, 'a "quoted", one', "NULL"],
            "v": [1, 2, None, -4],
        },
        schema=SCHEMA,
    )
    frames = [*GOOD, awkward]
    for number, rows in enumerate(frames):
        first.write(number, rows)
    session = first.session()
    session.query("all", session.from_stream("rows"))
    first.finish(session, sinks={"all": FileSink(second.input, format), "sums": first.out})
    assert first.results() == first.expected(*frames)
    assert plain(read_results(second.input, format).cast(dict(SCHEMA))) == plain(pl.concat(frames))
    second.finish()
    assert second.results() == first.results()


def test_json_objects_without_their_nulls(tmp_path: Path) -> None:
    """Many writers leave out what is NULL: a key missing here and there is no missing column."""
    stage = Stage(tmp_path, "json")
    rows = sample(0).with_columns(k=pl.when(pl.col("v") % 3 == 0).then(None).otherwise("k"))
    rows = pl.concat([rows.head(1).with_columns(k=pl.lit(None, pl.String)), rows.tail(-1)])
    lines = [json.dumps({n: v for n, v in row.items() if v is not None}) for row in rows.to_dicts()]
    assert '"k"' not in lines[0]
    stage.write(0, "\n".join(["", " " * 5000, *lines]))
    stage.finish()
    assert stage.results() == stage.expected(rows)


def test_a_column_that_no_json_object_has(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "json")
    stage.write(0, sample(0).drop("v").write_ndjson())
    assert "'v'" in stage.refused(SourceError)


def test_times_outside_the_calendar(tmp_path: Path) -> None:
    """Milliseconds taken for seconds give the year 55840: odd, but no reason to die after a commit."""
    rows = pl.DataFrame({"time": [1, 2**60], "k": ["a", "b"]})
    rows = rows.with_columns(pl.col("time").cast(pl.Datetime("us")))
    rows.write_parquet(tmp_path / "0.parquet")
    session = Session.in_process(2)
    stream = session.stream("rows", path=tmp_path / "*.parquet", ordered="time")
    session.query("n", stream.group_by("k", tumble("1 minute")).agg(count().alias("n")))
    run = session.start(sinks={"n": "memory"}, at_end="close")
    run.await_termination(60)
    assert run.results("n").height == 2
    assert "seconds since 1970" in str(run.recent_progress[0]["eventTime"]["max"])
