"""Checkpoints that cannot be used: refused with the reason, left as they were, usable once mended."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session, col, max_
from anabranch.errors import PlanningError, RunError, SettingsError, StateError
from anabranch.routing.grid import Scattered
from anabranch.routing.lane_times import LaneTime
from anabranch.routing.reach import Hold, Reach, Spilled
from anabranch.routing.shaped import Shaped, Track
from anabranch.sinks.files import FileSink
from anabranch.sources import file_reader
from anabranch.sources import spark as spark_source
from anabranch.sources.base import ReadContext
from anabranch.sources.files import FileSource
from anabranch.sources.kafka import reader as kafka_reader
from anabranch.sources.tables import source as table_source
from anabranch.state.checksum import seal
from anabranch.state.entry import Delta
from anabranch.state.manifest import (
    FORMAT_VERSION,
    ExchangeRecord,
    HeldRef,
    Manifest,
    MovingRecord,
    QueryRecord,
    ResultPart,
    StreamRecord,
    SubqueryRecord,
    TableRecord,
)
from anabranch.state.place import Place
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import ShelfChange
from helpers import Stage, missing, orphans, sample, sums, visible_epochs

GOOD = [sample(number) for number in range(4)]


def half_way(stage: Stage) -> Stage:
    """Two files are read and counted, two more have come since."""
    for number in range(2):
        stage.write(number)
    stage.run()
    for number in range(2, 4):
        stage.write(number)
    return stage


def fingerprint(*folders: Path) -> dict[str, str]:
    """All files with their contents; the lock's is of no account."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def refused_and_unchanged(stage: Stage, *words: str, session: Session | None = None) -> None:
    before = fingerprint(stage.checkpoint, stage.out)
    message = stage.refused(StateError, session)
    for word in words:
        assert word in message
    assert fingerprint(stage.checkpoint, stage.out) == before


def goes_on(stage: Stage) -> None:
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)
    assert (orphans(stage.checkpoint), missing(stage.checkpoint)) == (set(), set())


def _another(stage: Stage) -> Session:
    session = stage.session()
    rows = session.from_stream("rows")
    session.query("peak", rows.group_by((col("time") // 10).alias("tb")).agg(max_("v")))
    return session


def _changed(stage: Stage) -> Session:
    session, rows = stage.stream()
    session.query("sums", sums(rows.where(col("v") > 3)))
    return session


OTHERS: dict[str, tuple[Callable[[Stage], Session], tuple[str, ...]]] = {
    "another query": (_another, ("query peak is new: the checkpoint does not have it",)),
    "a changed query": (
        _changed,
        ("query sums: «WHERE v > 3» is new. ",),
    ),
    "another lateness": (
        lambda stage: stage.session(lateness=7),
        ("stream rows: lateness was 0 and is now 7. ",),
    ),
    "another schema": (
        lambda stage: stage.session(schema={"time": "int64", "k": "string", "v": "float64"}),
        ("stream rows: column 'v' was int64 and is now float64. ",),
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoint_of_another_query_set(tmp_path: Path, other: str) -> None:
    stage = half_way(Stage(tmp_path))
    make, words = OTHERS[other]
    refused_and_unchanged(
        stage, f"The checkpoint '{stage.checkpoint}' belongs to another query set", *words,
        "Use another checkpoint folder", session=make(stage),
    )  # fmt: skip
    goes_on(stage)


def test_checkpoint_of_a_renamed_query(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    session, rows = stage.stream()
    session.query("totals", sums(rows))
    with pytest.raises(StateError) as caught:
        session.start(sinks={"totals": stage.out}, checkpoint=stage.checkpoint)
    assert "query sums is in the checkpoint but not in this session" in str(caught.value)
    assert "query totals is new" in str(caught.value)
    goes_on(stage)


def newest(stage: Stage) -> Path:
    """The entry of the second epoch: what it has changed."""
    return sorted((stage.checkpoint / "manifests").glob("*.json"))[-1]


def whole(stage: Stage) -> Path:
    """The entry of the first epoch: a whole manifest."""
    return sorted((stage.checkpoint / "manifests").glob("*.json"))[-2]


def test_checkpoint_of_another_format_version(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    whole = newest(stage).read_bytes()
    newest(stage).write_bytes(
        json.dumps(json.loads(whole) | {"format_version": FORMAT_VERSION + 1}).encode()
    )
    refused_and_unchanged(
        stage, str(newest(stage)), f"has format version {FORMAT_VERSION + 1}",
        f"reads {FORMAT_VERSION}", "a new checkpoint folder",
    )  # fmt: skip
    newest(stage).write_bytes(whole)
    goes_on(stage)


def test_checkpoint_of_an_older_format_version(tmp_path: Path) -> None:
    """The first version had no checksum; what it lacks is said."""
    stage = half_way(Stage(tmp_path))
    older = json.loads(newest(stage).read_bytes())["state"] | {"format_version": 1}
    del older["serial"], older["token"], older["holder"]
    newest(stage).write_bytes(json.dumps(older).encode())
    refused_and_unchanged(
        stage, "has format version 1 (without checksums and run tokens)", f"reads {FORMAT_VERSION}"
    )


@pytest.mark.parametrize(
    "at",
    [
        "", "streams/rows", "subqueries/sums@1", "subqueries/sums@1/shelf/0",
        "delta", "delta/state", "delta/state/streams/rows", "delta/shelves/sums@1/1/0",
    ],
)  # fmt: skip
def test_fields_that_this_version_does_not_know_are_refused(tmp_path: Path, at: str) -> None:
    stage = half_way(Stage(tmp_path))
    keys = at.split("/")
    entry = newest(stage) if keys[0] == "delta" else whole(stage)
    contents = json.loads(entry.read_bytes())
    del contents["checksum"]
    inner = contents
    for key in (key for key in keys if key not in ("", "delta")):
        inner = inner[int(key) if key.isdigit() else key]
    inner["generation"] = 3
    entry.write_bytes(seal(json.dumps(contents).encode()))
    refused_and_unchanged(stage, "unknown field `generation`", str(entry))


def test_differences_that_do_not_follow_what_is_before_them_are_refused(tmp_path: Path) -> None:
    one, other = (half_way(Stage(tmp_path / name)) for name in ("one", "other"))
    assert newest(one).name == newest(other).name
    shutil.copyfile(newest(other), newest(one))
    refused_and_unchanged(one, str(newest(one)), "of several checkpoints mixed")
    contents = json.loads(newest(other).read_bytes())
    del contents["checksum"]
    contents["shelves"]["sums@1"][0].append(["state/sums@1/nothing.arrow", 0])
    newest(other).write_bytes(seal(json.dumps(contents).encode()))
    refused_and_unchanged(other, str(newest(other)), "does not fit the one before it")


def test_a_difference_without_what_it_builds_on_is_refused(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    for path in sorted((stage.checkpoint / "manifests").glob("*.json"))[:-1]:
        path.unlink()
    refused_and_unchanged(stage, str(newest(stage)), "says what has changed since others")


def test_state_of_a_subquery_that_the_plan_does_not_have_is_refused(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    entry = whole(stage)
    newest(stage).unlink()
    contents = json.loads(entry.read_bytes())
    del contents["checksum"]
    contents["subqueries"]["nobody@1"] = contents["subqueries"]["sums@1"]
    entry.write_bytes(seal(json.dumps(contents).encode()))
    refused_and_unchanged(stage, "has state of a subquery 'nobody@1'", "Existing: sums@1")


def test_what_a_manifest_holds_changes_only_with_its_version() -> None:
    """Else a build would read half of what another has written."""
    path = Path(__file__).parents[1] / "golden" / "manifest_fields.json"
    structs = (
        Manifest,
        Delta,
        ShelfChange,
        Reach,
        StreamRecord,
        LaneTime,
        ExchangeRecord,
        SubqueryRecord,
        QueryRecord,
        HeldRef,
        MovingRecord,
        ResultPart,
        TableRecord,
        SegmentRef,
        Hold,
        Spilled,
        Scattered,
        Shaped,
        Track,
    )
    fields = {struct.__name__: sorted(struct.__struct_fields__) for struct in structs}
    offsets = {
        "files": file_reader,
        "Kafka": kafka_reader,
        "tables": table_source,
        "Spark": spark_source,
    }
    fields |= {f"offset of {name}": sorted(module.OFFSET) for name, module in offsets.items()}
    assert fields == json.loads(path.read_bytes())[str(FORMAT_VERSION)], (
        "give FORMAT_VERSION the next number, say in VERSIONS what is new, and add the fields here"
    )
    assert all(struct.__struct_config__.forbid_unknown_fields for struct in structs)


def test_an_offset_with_a_part_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """An older build passed over what files that grow had added."""
    place = Place(tmp_path)
    context = ReadContext({"root": "in", "tails": []}, True, (), place)
    assert context.known_offset("s", file_reader.OFFSET) == context.offset
    assert ReadContext(None, True, (), place).known_offset("s", ()) is None
    with pytest.raises(StateError, match=r"Stream 's'.*'tails', which this version does not know"):
        context.known_offset("s", ("root",))
    (tmp_path / "in").mkdir()
    source = FileSource("s", str(tmp_path / "in"), "parquet", pl.Schema({"time": pl.Int64()}))
    with pytest.raises(StateError, match="'later'"):
        source.open(ReadContext({"root": "in", "later": 1}, True, ("time",), place))


def test_state_that_the_driver_does_not_see_is_noticed_at_the_first_epoch(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number, rows in enumerate(GOOD):
        stage.write(number, rows)

    def elsewhere(step: str, epoch: int) -> None:
        if step == "before-commit":
            (stage.checkpoint / "state").rename(tmp_path / "disk of another machine")

    message = stage.refused(RunError, on_step=elsewhere)
    for word in ("State of epoch 0 should be in", "'", "share", "not counted"):
        assert word in message
    goes_on(stage)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:200],
        lambda whole: b"[]",
        lambda whole: b"\xff\xfe" + whole,
        lambda whole: whole.replace(b'"epoch"', b'"epochs"'),
        lambda whole: whole.replace(b'"epoch": 1', b'"epoch": "one"'),
    ],
    ids=["empty", "cut off", "no object", "no text", "field missing", "wrong type"],
)
def test_corrupt_manifest(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    stage = half_way(Stage(tmp_path))
    whole = newest(stage).read_bytes()
    newest(stage).write_bytes(damage(whole))
    assert newest(stage).read_bytes() != whole
    # Not the manifest before it instead: the results of this epoch are already visible
    refused_and_unchanged(stage, str(newest(stage)), "Restore it from a copy")
    newest(stage).write_bytes(whole)
    goes_on(stage)


def test_checkpoint_folder_below_a_file(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    (tmp_path / "file").write_text("")
    stage.checkpoint = tmp_path / "file" / "checkpoint"
    message = stage.refused(StateError)
    for word in (
        f"'{stage.checkpoint}' cannot be written",
        "Not a directory",
        "Choose another folder",
    ):
        assert word in message
    assert not stage.out.exists()


def test_checkpoint_folder_on_a_read_only_disk(tmp_path: Path, small_disk: Path) -> None:
    stage = Stage(tmp_path)
    stage.checkpoint = small_disk / "checkpoint"
    half_way(stage)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused_and_unchanged(stage, "Read-only file system", str(stage.checkpoint))
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    goes_on(stage)


def test_result_folder_below_a_file(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in range(4):
        stage.write(number)
    (tmp_path / "file").write_text("")
    right, stage.out = stage.out, tmp_path / "file" / "out"
    message = stage.refused(SettingsError)
    for word in (f"cannot be written to '{stage.out}'", "Not a directory", "Choose another folder"):
        assert word in message
    stage.out = right
    assert not (stage.checkpoint / "manifests").exists(), "it is told before anything is read"
    goes_on(stage)


def test_checkpoint_in_use_by_another_run_of_this_process(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    held = stage.start(trigger="continuous")
    try:
        message = stage.refused(StateError)
        assert f"'{stage.checkpoint}' is in use by process {os.getpid()}" in message
        assert "Stop that run first" in message
    finally:
        held.stop()
    goes_on(stage)


def test_checkpoint_in_use_by_another_process_and_free_once_it_is_killed(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import fcntl, sys, time; lock = open(sys.argv[1], 'a+'); fcntl.flock(lock, fcntl.LOCK_EX);"
         "lock.truncate(0); print('held', file=lock, flush=True); print('held', flush=True);"
         "time.sleep(60)", str(stage.checkpoint / "lock")],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holder.stdout
        assert holder.stdout.readline()
        refused_and_unchanged(stage, "is in use by process held")
    finally:
        holder.kill()
        holder.wait()
    goes_on(stage)


def segment(stage: Stage) -> Path:
    return stage.checkpoint / sorted(stage.manifest().files())[0]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut off", "overwritten"])
def test_missing_or_corrupt_segment(tmp_path: Path, damage: str) -> None:
    stage = half_way(Stage(tmp_path))
    path = segment(stage)
    whole = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut off":
            path.write_bytes(whole[: len(whole) // 2])
        case "overwritten":
            path.write_bytes(b"x" * len(whole))
    message = stage.refused(StateError)
    for word in (f"The state segment '{path}'", "cannot be read", "Restore it"):
        assert word in message
    assert stage.manifest().epoch == 1
    assert visible_epochs(stage.out) == [1]
    assert list(stage.out.glob("_epoch=*")) == []
    path.write_bytes(whole)
    goes_on(stage)


def test_a_new_checkpoint_with_the_results_of_another_run_is_refused(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    stage.finish()
    before = fingerprint(stage.out)
    right, stage.checkpoint = stage.checkpoint, tmp_path / "new"
    message = stage.refused(StateError)
    assert f"'{stage.out}', which already has 'epoch=000000000001' of run " in message
    assert f"(checkpoint '{right}')" in message
    assert fingerprint(stage.out) == before
    stage.checkpoint = right
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


def test_an_old_copy_of_the_checkpoint_is_refused(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    subprocess.run(["cp", "-r", stage.checkpoint, tmp_path / "copy"], check=True)
    stage.finish()
    right, stage.checkpoint = stage.checkpoint, tmp_path / "copy"
    message = stage.refused(StateError)
    assert "already has 'epoch=000000000002', but the checkpoint has come to epoch 1" in message
    stage.checkpoint = right
    assert stage.results() == stage.expected(*GOOD)


def test_two_queries_cannot_share_a_folder(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    session = _another(stage)
    with pytest.raises(PlanningError, match="'peak' and 'sums' have the same folder"):
        session.start(
            sinks={"peak": FileSink(stage.out, "csv"), "sums": stage.out},
            checkpoint=stage.checkpoint,
        )
    assert not stage.checkpoint.exists()


def test_one_session_may_start_again_also_with_another_checkpoint(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    session = stage.session()
    stage.finish(session)
    assert stage.results() == stage.expected(*GOOD)
    stage.checkpoint, stage.out = tmp_path / "second", tmp_path / "second out"
    stage.finish(session)
    assert stage.results() == stage.expected(*GOOD)


def test_leftovers_of_a_crash_are_swept(tmp_path: Path) -> None:
    """Half-written files and segments that no manifest names go at the next start."""
    stage = half_way(Stage(tmp_path))
    state = segment(stage).parent
    leftovers = [
        state / "000000000002-0000-open-0123456789ab.arrow",
        state / ".000000000002-0000-open-0123456789ab.arrow.77.tmp",
        stage.checkpoint / "manifests" / ".000000000002.json.77.tmp",
        stage.out / "_epoch=000000000002-abcdef01" / "part-site-0000-0.parquet",
    ]
    for path in leftovers:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
    run = stage.run(trigger="available-now")
    assert run.last_progress
    assert [path for path in leftovers if path.exists()] == []
    goes_on(stage)


def test_a_task_of_an_earlier_attempt_cannot_spoil_the_epoch(tmp_path: Path) -> None:
    """What a task still writes after its driver is gone stays out of the results of the next try."""
    stage = half_way(Stage(tmp_path))
    late_parts: list[Path] = []

    def die(step: str, epoch: int) -> None:
        if step == "before-commit":
            late_parts.extend(stage.out.glob("_*/*"))
            raise StateError("killed")

    assert stage.refused(StateError, on_step=die) == "killed"
    assert late_parts
    mended = sample(2).with_columns(v=pl.lit(0, pl.Int64))
    stage.write(2, mended)

    def write_late(step: str, epoch: int) -> None:
        if step == "before-commit" and epoch == 2:
            for path in late_parts:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(b"of the attempt before")

    stage.finish(on_step=write_late)
    assert stage.results() == stage.expected(GOOD[0], GOOD[1], mended, GOOD[3])
    stage.run()
    assert list(stage.out.glob("_epoch=*")) == []


def test_the_handle_says_what_happened(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    path = segment(stage)
    whole = path.read_bytes()
    path.unlink()
    run = stage.start()
    deadline = time.monotonic() + 30
    while run.is_active and time.monotonic() < deadline:
        time.sleep(0.01)
    error = run.exception()
    assert isinstance(error, StateError)
    assert run.status["message"] == f"Failed: {error}"
    path.write_bytes(whole)
    goes_on(stage)


def test_a_link_to_nothing_among_the_manifests_is_told(tmp_path: Path) -> None:
    stage = half_way(Stage(tmp_path))
    link = newest(stage).with_name("000000000099.json")
    link.symlink_to(tmp_path / "nowhere")
    for use in (lambda: stage.refused(StateError), lambda: _explained(stage)):
        message = use()
        assert str(link) in message
        assert "link to what is not there" in message
    link.unlink()
    goes_on(stage)


def _explained(stage: Stage) -> str:
    with pytest.raises(StateError) as caught:
        stage.session().explain(stage.checkpoint)
    return str(caught.value)


def test_a_folder_in_the_place_of_any_file_is_told_or_not_met(tmp_path: Path) -> None:
    """By name, in a StateError, wherever the file system complains."""
    stage = half_way(Stage(tmp_path))
    whole = tmp_path / "whole"
    shutil.copytree(stage.checkpoint, whole)
    shutil.copytree(stage.out, tmp_path / "results")
    files = [path.relative_to(whole) for path in whole.rglob("*") if path.is_file()]
    for name in files:
        for place, copy in ((stage.checkpoint, whole), (stage.out, tmp_path / "results")):
            shutil.rmtree(place)
            shutil.copytree(copy, place)
        (stage.checkpoint / name).unlink()
        (stage.checkpoint / name / "inner").mkdir(parents=True)
        told = ""
        try:
            stage.finish()
        except StateError as error:
            told = str(error)
        assert not told or str(name) in told
        # Where nothing is told, the file was not needed: no row is missing, none is there twice
        assert told or stage.results() == stage.expected(*GOOD), name
