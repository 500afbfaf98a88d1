"""Input set aside instead of stopping the run: what lies in the dead-letter folder, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from anabranch import Session, col, count
from anabranch.errors import RunError, SettingsError, StateError
from anabranch.sinks.dead_letter import Letters
from anabranch.sources import files, salvage
from anabranch.sources.base import Bad
from helpers import FORMATS, SCHEMA, Stage, plain, sample, source_metrics

GOOD = [sample(number) for number in range(4)]
NAME = "epoch=000000000002"


def run_on(stage: Stage, content: pl.DataFrame | bytes | str, **options: Any) -> dict[str, Any]:
    """Runs over four files with this as file 2, to the end; what is counted of the stream."""
    for number in range(4):
        stage.write(number, content if number == 2 else None)
    run = stage.finish(stage.session(on_bad="dead-letter", **options), dead_letter=stage.dead)
    assert stage.taken() == [stage.path(number).name for number in range(4)]
    assert not list(stage.dead.glob("*/*/_*"))
    return source_metrics(run)


def letters(stage: Stage, pattern: str) -> list[Path]:
    return sorted((stage.dead / "bad" / "rows").glob(pattern))


def reason(stage: Stage) -> dict[str, Any]:
    (file,) = letters(stage, f"{NAME}/*.reason.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.parametrize(
    ("format", "fault"),
    [(format, "missing column") for format in FORMATS]
    + [(format, fault) for format in ("parquet", "arrow") for fault in ("truncated", "zero bytes")],
)
def test_a_broken_file_is_kept_whole(tmp_path: Path, format: str, fault: str) -> None:
    stage = Stage(tmp_path, format)
    content = stage.write(2, sample(2).drop("v")).read_bytes()
    if fault != "missing column":
        whole = stage.write(2).read_bytes()
        content = whole[: len(whole) // 2] if fault == "truncated" else b""
    counted = run_on(stage, content)
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], GOOD[3])
    assert (counted["badFilesTotal"], counted["badRowsTotal"], counted["rowsTotal"]) == (1, 0, 120)
    told = reason(stage)
    assert (told["stream"], told["file"]) == ("rows", str(stage.path(2)))
    assert (
        "column 'v' is missing" in told["reason"] or f"cannot be read as {format}" in told["reason"]
    )
    (copy,) = letters(stage, f"{NAME}/*{stage.path(2).name}")
    assert copy.read_bytes() == content


CSV_FAULTS = {
    "25,key-1": "expected 3 fields, got 2",
    "25,key-1,7,8": "expected 3 fields, got 4",
    "25,key-1,seven": "invalid value 'seven'",
    'soon,"a, b",7': "invalid value 'soon'",
    "25,key-\udcff,7": "Invalid UTF8",
}
JSON_FAULTS = {
    '{"time": 25, "k": "key-1", "v"': "JSON parse error",
    '{"time": 25, "k": "key-1", "v": "seven"}': "changed from number to string",
    '{"time": 25.5, "k": "key-1", "v": 7}': "25.5",
    "[25, 7]": "JSON parse error",
    "nonsense": "JSON parse error",
}


@pytest.mark.parametrize("format", ["csv", "json"])
def test_good_rows_of_a_broken_text_file_are_kept(tmp_path: Path, format: str) -> None:
    faults = CSV_FAULTS if format == "csv" else JSON_FAULTS
    stage = Stage(tmp_path, format)
    lines = stage.write(2).read_text().splitlines()
    first = 1 if format == "csv" else 0
    for number, line in enumerate(faults):
        lines.insert(first + number * 8, line)
    # What stands beside a bad line must mean what it means in a good file
    awkward = pl.DataFrame(
        {"time": [27, 28, 29], "k": ["", None, 'a "b", c'], "v": [None, 2, 3]}, SCHEMA
    )
    more = awkward.write_csv(include_header=False) if format == "csv" else awkward.write_ndjson()
    content = ("\n".join(lines) + "\n" + more).encode("utf-8", "surrogateescape")
    counted = run_on(stage, content)
    assert stage.results() == stage.expected(*GOOD, awkward)
    assert (counted["badFilesTotal"], counted["badRowsTotal"]) == (0, len(faults))
    assert counted["rowsTotal"] == 163
    told = reason(stage)
    assert f"{len(faults)} bad line(s), the first is row {first + 1}: " in told["reason"]
    assert told["lines"] == len(faults)
    (file,) = letters(stage, f"{NAME}/*.lines.jsonl")
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["row"] for entry in kept] == [first + 1 + n * 8 for n in range(len(faults))]
    for entry, (line, words) in zip(kept, faults.items(), strict=True):
        assert entry["line"] == line.replace("\udcff", "\ufffd")
        assert words in entry["reason"]
    assert len(letters(stage, f"{NAME}/*")) == 2, "only the bad lines are kept, not the file"


def test_bad_lines_beyond_what_is_kept_are_counted_and_the_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(salvage, "MAX_BAD_LINES", 3)
    stage = Stage(tmp_path, "csv")
    content = sample(2).write_csv() + "bad\n" * 10
    counted = run_on(stage, content)
    assert stage.results() == stage.expected(*GOOD)
    assert (counted["badFilesTotal"], counted["badRowsTotal"]) == (0, 10)
    (lines,) = letters(stage, f"{NAME}/*.lines.jsonl")
    assert len(lines.read_text().splitlines()) == 3
    (copy,) = letters(stage, f"{NAME}/*{stage.path(2).name}")
    assert copy.read_text() == content


def test_every_line_bad(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "csv")
    counted = run_on(stage, "time,k,v\n" + "x,y,z\n" * 7)
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], GOOD[3])
    assert (counted["badFilesTotal"], counted["badRowsTotal"]) == (0, 7)


@pytest.mark.parametrize("broken_groups", [[1], [0, 1]])
def test_a_parquet_file_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_groups: list[int]
) -> None:
    """Row groups that can be read are; the file counts once, and the letter says what is missing."""
    monkeypatch.setattr(files, "MIN_PIECE_ROWS", 1)
    stage = Stage(tmp_path)
    path = tmp_path / "groups.parquet"
    sample(2).write_parquet(path, row_group_size=20, compression="snappy")
    content = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path)
    for number in broken_groups:
        start = metadata.row_group(number).column(2).data_page_offset
        content[start : start + 24] = b"\xff" * 24
    counted = run_on(stage, bytes(content))
    kept = [GOOD[2].slice(20 * n, 20) for n in range(2) if n not in broken_groups]
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], *kept, GOOD[3])
    assert (counted["badFilesTotal"], counted["badRowsTotal"]) == (1, 0)
    told = [json.loads(file.read_text()) for file in letters(stage, f"{NAME}/*.reason.json")]
    assert [entry["part"].split(" of ")[0] for entry in told] == [
        f"row groups {n} to {n}" for n in broken_groups
    ]
    (copy,) = letters(stage, f"{NAME}/*{stage.path(2).name}")
    assert copy.read_bytes() == bytes(content)


@pytest.mark.parametrize("pieces", [1, 2])
def test_rows_without_a_time_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    monkeypatch.setattr(files, "MIN_PIECE_ROWS", 1)
    stage = Stage(tmp_path)
    untimed = pl.int_range(pl.len()) % 20 == 3
    broken = sample(2).with_columns(time=pl.when(untimed).then(None).otherwise("time"))
    path = tmp_path / "groups.parquet"
    broken.write_parquet(path, row_group_size=40 // pieces)
    counted = run_on(stage, path.read_bytes())
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], GOOD[2].filter(~untimed), GOOD[3])
    assert (counted["badFilesTotal"], counted["badRowsTotal"], counted["rowsTotal"]) == (0, 2, 158)
    kept = pl.concat([pl.read_parquet(part) for part in letters(stage, f"{NAME}/*.parquet")])
    assert plain(kept) == plain(broken.filter(untimed))


def late_rows(stage: Stage, on_late: str, **options: Any) -> tuple[dict[str, Any], pl.DataFrame]:
    """Files 0 to 3, where 2 and 3 also have rows of window 0, which is closed by then."""
    late = pl.DataFrame({"time": [2, 7, 9], "k": ["key-1", None, "new"], "v": [1, 2, 3]}, SCHEMA)
    for number in range(4):
        stage.write(number, pl.concat([sample(number), late]) if number > 1 else None)
    run = stage.finish(stage.session(on_late=on_late, **options), dead_letter=stage.dead)
    return source_metrics(run), late


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("on_late", ["count", "dead-letter"])
def test_late_rows(tmp_path: Path, format: str, on_late: str) -> None:
    stage = Stage(tmp_path, format)
    counted, late = late_rows(stage, on_late)
    assert stage.results() == stage.expected(*GOOD)
    assert (counted["lateRowsTotal"], counted["rowsTotal"]) == (6, 166)
    kept = sorted(stage.dead.glob("late/rows/*/*.parquet"))
    if on_late == "count":
        assert kept == []
        return
    assert [part.parent.name for part in kept] == [NAME, "epoch=000000000003"]
    for part in kept:
        assert plain(pl.read_parquet(part, hive_partitioning=False)) == plain(late)


@pytest.mark.parametrize("format", FORMATS)
def test_letters_have_all_columns_of_the_stream(tmp_path: Path, format: str) -> None:
    """Also those no query asks for: what is set aside must be fit to be fed in again."""
    stage = Stage(tmp_path, format)
    strange = pl.DataFrame({"time": [None, 3], "k": ["none", "late"], "v": [8, 9]}, SCHEMA)
    for number in range(4):
        stage.write(number, pl.concat([sample(number), strange]) if number == 2 else None)
    session, rows = stage.stream(on_bad="dead-letter", on_late="dead-letter")
    session.query("n", rows.group_by((col("time") // 10).alias("tb")).agg(count().alias("n")))
    run = stage.finish(session, sinks={"n": "memory"}, dead_letter=stage.dead)
    assert plain(run.results("n")) == [(tb, 40) for tb in range(4)]
    kept = sorted(stage.dead.glob(f"*/rows/{NAME}/*.parquet"))
    assert [part.parents[2].name for part in kept] == ["bad", "late"]
    found = pl.concat([pl.read_parquet(part, hive_partitioning=False) for part in kept])
    assert plain(found) == plain(strange)


def test_late_rows_within_the_lateness_are_not_late(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    counted, late = late_rows(stage, "count", lateness=60)
    assert stage.results() == stage.expected(*GOOD, late, late)
    assert counted["lateRowsTotal"] == 0


def test_late_rows_are_counted_per_stream(tmp_path: Path) -> None:
    session = Session.in_process(settings={"fsync": False, "max_files_per_epoch": 1})
    union = None
    for name, late in (("left", 3), ("right", 0)):
        stage = Stage(tmp_path / name)
        stage.write(0, pl.DataFrame({"time": [50], "k": ["a"], "v": [0]}, SCHEMA))
        stage.write(1, pl.DataFrame({"time": [60] + [1] * late, "k": "a", "v": 0}, SCHEMA))
        rows = session.stream(name, path=stage.input, format="parquet", ordered="time")
        union = rows if union is None else union.union(rows)
    assert union
    session.query("n", union.group_by((col("time") // 10).alias("tb")).agg(count().alias("n")))
    run = session.start(sinks={"n": "memory"}, at_end="close")
    run.await_termination()
    assert plain(run.results("n")) == [(5, 2), (6, 2)]
    assert run.last_progress
    assert {
        source["description"]: source["customMetrics"]["lateRowsTotal"]
        for source in run.last_progress["sources"]
    } == {"left": 3, "right": 0}


def test_a_dead_letter_folder_must_be_given(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for option in ({"on_bad": "dead-letter"}, {"on_late": "dead-letter"}):
        with pytest.raises(SettingsError, match=r"start\(dead_letter='folder'\)"):
            stage.start(stage.session(**option))
    assert not stage.checkpoint.exists()


def test_a_dead_letter_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run_on(stage, b"")
    stage.checkpoint, stage.out = tmp_path / "another", tmp_path / "another out"
    message = stage.refused(StateError, stage.session(on_bad="dead-letter"), dead_letter=stage.dead)
    assert f"'{stage.dead}', which already has 'bad/rows/{NAME}' of run " in message
    assert len(letters(stage, "*")) == 1


def test_letters_are_flushed_before_the_epoch_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(
        "anabranch.sinks.dead_letter.sync", lambda path: flushed.append(Path(path).name)
    )
    kept = Letters(str(tmp_path / "dead"), "rows", 2, "a", fsync=True, private=True)
    broken = tmp_path / "broken.csv"
    broken.write_text("x\n")
    kept.keep_bad(Bad("rows", str(broken), "no header"))
    (folder,) = (tmp_path / "dead" / "bad" / "rows").iterdir()
    assert {path.name for path in folder.iterdir()} | {folder.name} == {*flushed}


def test_letters_of_a_committed_epoch_come_although_the_folder_is_another_one_now(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number, b"" if number == 2 else None)

    def stop(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-commit", 2):
            raise RuntimeError("the process is gone")

    def session() -> Session:
        return stage.session(on_bad="dead-letter")

    stage.refused(RunError, session(), dead_letter=stage.dead, on_step=stop)
    assert not letters(stage, "epoch=*")
    stage.write(3)
    stage.finish(session(), dead_letter=tmp_path / "elsewhere")
    assert len(letters(stage, f"{NAME}/*.reason.json")) == 1
