"""Streams and results on a real S3 server: equal to DuckDB, restarts, and what is told of what goes wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import obstore
import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import AnabranchError, SettingsError, SourceError, StateError
from anabranch.sinks.objects import whole_epochs
from anabranch.sources.objects import fetching
from anabranch.sources.objects.tree import LIST_EVERY, ObjectTree
from anabranch.state.bucket import Bucket as StoreBucket
from anabranch.state.bucket import plain_words
from anabranch.state.uris import bucket_of
from helpers import SCHEMA, SUMS, Stage, oracle, plain, read_results, sample
from s3_server import KEYS, ServedBucket


class Far(Stage):
    """A stage whose input and results are in a bucket."""

    def __init__(self, root: Path, bucket: ServedBucket, **given: Any) -> None:
        super().__init__(root, **given)
        self.bucket = bucket

    @property
    def far_out(self) -> str:
        return self.bucket.uri(self.out)

    def far_session(self, **stream: Any) -> Session:
        path = stream.pop("path", self.bucket.uri(self.input))
        return self.session(path=path, **stream)

    def go(self, session: Session | None = None, **options: Any) -> None:
        sinks = {"sums": {"path": self.far_out, "format": self.out_format}}
        self.run(session or self.far_session(), sinks=sinks, **options)


@pytest.fixture
def far(s3_bucket: ServedBucket, s3_root: Path) -> Far:
    return Far(s3_root, s3_bucket)


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "arrow"])
def test_streams_and_results_in_a_bucket_equal_duckdb_over_restarts(
    s3_bucket: ServedBucket, s3_root: Path, format: str
) -> None:
    far = Far(s3_root, s3_bucket, format=format, out_format=format)
    order = "name" if format in ("parquet", "json") else "time"
    for number in range(2):
        far.write(number)
    far.go(far.far_session(file_order=order))
    far.write(2)
    far.go(far.far_session(file_order=order), at_end="close")
    assert far.results() == far.expected(*map(sample, range(3)))
    # Nothing waits, and what is whole says so
    assert not (far.out / "_waiting").exists() or not [*(far.out / "_waiting").rglob("*.*")]
    parts = [part for epoch in whole_epochs(far.far_out).values() for part in epoch]
    there = [far.bucket.uri(part) for part in far.out.rglob("part-*") if part.is_file()]
    assert sorted(parts) == sorted(there)
    assert not list((Path(os.environ["TMPDIR"])).rglob("object-*"))


def test_a_pattern_and_a_single_object_stand_for_what_they_say(far: Far) -> None:
    far.write(0)
    far.write(1)
    (far.input / "other").mkdir()
    sample(7).write_parquet(far.input / "other" / "0007.parquet")
    (far.input / "_hidden.parquet").write_bytes(b"not to be read")
    far.go(far.far_session(path=f"{far.bucket.uri(far.input)}/000*.parquet"), at_end="close")
    assert far.results() == far.expected(sample(0), sample(1))
    alone = Far(far.root / "alone", far.bucket)
    alone.go(far.far_session(path=far.bucket.uri(far.path(1))), at_end="close")
    assert alone.results() == alone.expected(sample(1))


def test_a_large_object_is_cut_into_pieces_that_fetch_what_they_need(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.sources.pieces.WHOLE", 0)
    monkeypatch.setattr("anabranch.sources.files.MIN_PIECE_ROWS", 10)
    monkeypatch.setattr(fetching, "GAP", 0)
    monkeypatch.setattr(fetching, "TAIL", 64)
    rows = pl.concat(map(sample, range(4))).with_columns(
        unread=pl.lit("x" * 50) + pl.col("v").cast(str)
    )
    rows.write_parquet(far.path(0), row_group_size=20)
    asked: list[tuple[int, int]] = []
    fetch = StoreBucket.fetch

    def counted(self: Any, key: str, target: Any, span: Any = None, version: Any = None) -> None:
        if version:
            asked.append(span)
        fetch(self, key, target, span, version)

    monkeypatch.setattr(StoreBucket, "fetch", counted)
    far.go(far.far_session(), at_end="close")
    assert far.results() == far.expected(rows.drop("unread"))
    data = far.path(0).stat().st_size
    assert all(span is not None for span in asked)
    assert len(asked) > 4
    assert max(end - start for start, end in asked) < data / 2


def test_by_name_a_look_lists_what_comes_after_the_last_name(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    asked: list[str | None] = []
    listing = StoreBucket.list

    def counted(self: Any, folder: str, after: str | None = None) -> Any:
        asked.append(after)
        return listing(self, folder, after)

    monkeypatch.setattr(StoreBucket, "list", counted)
    tree = ObjectTree(far.bucket.uri(far.input), by_name=True, clock=lambda: now[0])
    far.write(3)
    far.write(5)
    assert [entry.names[0] for entry in tree.look().new] == ["0003.parquet", "0005.parquet"]
    far.write(4)
    far.write(6)
    assert [entry.names[0] for entry in tree.look().new] == ["0006.parquet"]
    assert tree.look().new == []
    now[0] += LIST_EVERY
    far.path(3).unlink()
    look = tree.look()
    assert "0004.parquet" in {entry.names[0] for entry in look.new}
    assert look.gone == {"0003.parquet"}
    key = str(far.input.relative_to(far.bucket.folder))
    assert asked == [None, f"{key}/0005.parquet", f"{key}/0006.parquet", None]


def test_what_comes_later_with_a_smaller_name_is_read_too(far: Far) -> None:
    far.write(1)
    far.go(far.far_session(file_order="name", lateness=1000))
    far.write(0)
    far.go(far.far_session(file_order="name", lateness=1000), at_end="close")
    assert far.results() == far.expected(sample(0), sample(1))


def test_lanes_are_folders_of_the_bucket(far: Far) -> None:
    for number in range(2):
        (far.input / f"lane-{number}").mkdir()
        sample(number).write_parquet(far.input / f"lane-{number}" / "a.parquet")
    far.go(far.far_session(lanes=True), at_end="close")
    assert far.results() == far.expected(sample(0), sample(1))


@pytest.mark.parametrize("choice", ["delete", "archive"])
def test_objects_that_were_read_are_taken_away_if_asked(far: Far, choice: str) -> None:
    far.write(0)
    archive = far.bucket.uri(far.root / "archive")
    more = {"archive": archive} if choice == "archive" else {}
    far.go(far.far_session(clean_source=choice, **more), at_end="close")
    assert far.results() == far.expected(sample(0))
    assert not far.path(0).exists()
    assert (far.root / "archive" / far.path(0).name).exists() == (choice == "archive")


def test_file_uris_are_folders_of_this_machine(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    session = stage.session(path=stage.input.as_uri())
    stage.run(session, sinks={"sums": stage.out.as_uri()}, at_end="close")
    assert stage.results() == stage.expected(sample(0))


# -- crashes between commit and publishing ---------------------------------------------------------


def test_an_epoch_is_whole_or_not_marked_and_the_next_start_publishes_it(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write(0)
    copy, copied = obstore.copy, []

    def fail_at_second(*given: Any, **options: Any) -> None:
        copied.append(given)
        if len(copied) > 1:
            raise obstore.exceptions.GenericError("500 Internal Server Error")
        copy(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "copy", fail_at_second)
        with pytest.raises(AnabranchError, match="The next start does that"):
            far.go(far.far_session(), at_end="close")
    assert len([*far.out.glob("epoch=*/part-*")]) == 1
    assert whole_epochs(far.far_out) == {}
    far.go(far.far_session(), at_end="close")
    assert far.results() == far.expected(sample(0))
    assert len(whole_epochs(far.far_out)) == 1


# -- what goes wrong -------------------------------------------------------------------------------


def test_a_bucket_that_is_not_there_is_named(far: Far, s3_bucket: ServedBucket) -> None:
    with pytest.raises(SourceError, match="is there a bucket 'no-such-bucket'"):
        far.far_session(path="s3://no-such-bucket/in")
    far.write(0)
    with pytest.raises(SettingsError, match="is there a bucket 'no-such-bucket'"):
        far.run(far.far_session(), sinks={"sums": "s3://no-such-bucket/out"})


def test_keys_that_do_not_let_in_are_named_and_never_told(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write(0)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-somebody")
    with pytest.raises(SourceError) as caught:
        far.far_session()
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY do not let this user in" in str(
        caught.value
    )
    assert "a-secret-of-somebody" not in str(caught.value)
    assert KEYS["AWS_ACCESS_KEY_ID"] not in str(caught.value)
    assert plain_words("no a-secret-of-somebody <?xml a") == "no …"


def test_keys_are_in_no_manifest_and_no_result(far: Far, s3_bucket: ServedBucket) -> None:
    far.write(0)
    far.go(far.far_session(), checkpoint=s3_bucket.uri(far.checkpoint), at_end="close")
    for path in far.root.rglob("*"):
        if path.is_file():
            assert not any(value.encode() in path.read_bytes() for value in list(KEYS.values())[:2])


def test_an_object_that_vanishes_is_told_and_nothing_of_the_epoch_counts(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write(0)
    far.write(1)
    fetch = StoreBucket.fetch

    def vanishing(self: Any, key: str, *given: Any) -> None:
        if key.endswith("0001.parquet"):
            far.path(1).unlink(missing_ok=True)
        fetch(self, key, *given)

    session = far.far_session()
    monkeypatch.setattr(StoreBucket, "fetch", vanishing)
    with pytest.raises(AnabranchError, match=r"0001.parquet': is gone since it was listed"):
        far.go(session, at_end="close")
    monkeypatch.undo()


def put_object(far: Far, number: int, rows: pl.DataFrame) -> None:
    """Puts an object as people do, so that the store has a tag of it."""
    local = Path(os.environ["TMPDIR"]) / "rows.parquet"
    rows.write_parquet(local)
    bucket, key = bucket_of(far.bucket.uri(far.path(number)))
    bucket.put(key, local)


def test_an_object_that_was_changed_stops_the_run_and_the_next_start_reads_it(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_object(far, 0, sample(0))
    fetch = StoreBucket.fetch

    def changing(self: Any, key: str, *given: Any) -> None:
        _, span, version = (*given, None, None)[:3]
        if span is None and version is not None:
            put_object(far, 0, sample(3))
        fetch(self, key, *given)

    session = far.far_session(on_bad="dead-letter")
    with monkeypatch.context() as patch:
        patch.setattr(StoreBucket, "fetch", changing)
        with pytest.raises(AnabranchError, match="was changed since it was listed"):
            far.go(session, at_end="close", dead_letter=far.dead)
    far.go(far.far_session(), at_end="close")
    assert far.results() == far.expected(sample(3))


def test_a_broken_object_goes_to_the_dead_letters_with_its_uri(far: Far) -> None:
    far.write(0)
    far.write(1, b"PAR1 this is none PAR1")
    far.go(far.far_session(on_bad="dead-letter"), at_end="close", dead_letter=far.dead)
    assert far.results() == far.expected(sample(0))
    (letter,) = far.dead.rglob("*.reason.json")
    told = json.loads(letter.read_text())
    assert told["file"] == far.bucket.uri(far.path(1))
    assert f"object '{far.bucket.uri(far.path(1))}'" in told["reason"]
    assert (
        letter.with_name(letter.name.removesuffix(".reason.json")).read_bytes().startswith(b"PAR1")
    )


def test_a_folder_of_results_belongs_to_one_run(far: Far) -> None:
    far.write(0)
    far.go(at_end="close")
    with pytest.raises(StateError, match=r"belongs to run .*_run.json"):
        far.go(checkpoint=far.root / "another", at_end="close")
    far.go(at_end="close")
    assert plain(read_results(far.out)) == oracle(SUMS, rows=sample(0))


def test_results_that_would_be_read_as_input_are_refused(far: Far, s3_bucket: ServedBucket) -> None:
    far.write(0)
    session = far.far_session(path=s3_bucket.uri(far.root))
    with pytest.raises(SettingsError, match="which stream 'rows' would read as input"):
        far.go(session)
    with pytest.raises(SettingsError, match="inside the checkpoint"):
        far.run(
            far.far_session(),
            checkpoint=s3_bucket.uri(far.checkpoint),
            sinks={"sums": f"{s3_bucket.uri(far.checkpoint)}/out"},
        )


@pytest.mark.parametrize(
    "path", ["s3://", "s3:///in", "s3://key:secret@bucket/in", "s3://b/in?region=x", "s3://b/a//c"]
)
def test_a_path_that_says_more_than_bucket_and_folder_is_refused(path: str) -> None:
    with pytest.raises(SourceError, match="expected s3://bucket/folder"):
        Session.in_process().stream("rows", path=path, ordered="time", schema=SCHEMA, format="csv")


def test_what_a_bucket_cannot_do_is_refused(far: Far) -> None:
    far.write(0)
    with pytest.raises(SettingsError, match="lifecycle rule"):
        far.run(far.far_session(), sinks={"sums": {"path": far.far_out, "retain": "1 day"}})
    with pytest.raises(SourceError, match="expected a folder of the same bucket"):
        far.far_session(clean_source="archive", archive="s3://other/archive")
