"""Checkpoints on a real S3 server: runs, restarts, lost answers, damage, savepoints, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import obstore
import pytest
from answers import LosingAnswers
from obstore.exceptions import GenericError
from rivalry import GOOD, filled, one_line
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.errors import StateError
from anabranch.state import object_place
from anabranch.state.place import place, place_at
from helpers import Stage, manifests, missing, orphans
from s3_server import ServedBucket, change_machine


def half(stage: Stage, checkpoint: str) -> None:
    """Runs over the first half of the input."""
    for number in range(3):
        stage.write(number, GOOD[number])
    stage.run(checkpoint=checkpoint)


def rest(stage: Stage, checkpoint: str) -> None:
    for number in range(3, len(GOOD)):
        stage.write(number, GOOD[number])
    stage.finish(checkpoint=checkpoint)


def ask(*arguments: str | Path, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["checkpoint", *map(str, arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_a_run_goes_on_from_s3_on_another_machine(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(s3_root)
    half(stage, s3_bucket.uri(stage.checkpoint))
    change_machine(monkeypatch, tmp_path / "other")
    rest(stage, s3_bucket.uri(stage.checkpoint))
    assert stage.results() == stage.expected(*GOOD)
    assert manifests(stage.checkpoint)[-1].epoch == len(GOOD)
    assert missing(stage.checkpoint) == orphans(stage.checkpoint) == set()
    one_line(stage)


def test_state_stays_in_the_cache_until_it_is_no_longer_needed(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path
) -> None:
    stage = Stage(s3_root)
    half(stage, s3_bucket.uri(stage.checkpoint))
    durable = place(s3_bucket.uri(stage.checkpoint))
    file = next(iter(manifests(stage.checkpoint)[-1].files()))
    assert durable.scratch.is_relative_to(tmp_path / "machine")
    assert durable.local(file).read_bytes() == (stage.checkpoint / file).read_bytes()
    assert durable.has(file)
    assert not durable.has(f"{file}.no")
    assert durable.remove(file)
    assert not durable.has(file)
    assert not (durable.scratch / file).exists()


@pytest.mark.parametrize("lost", [1, 3])
def test_an_entry_whose_answer_was_lost_is_not_taken_for_a_rivals(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Every entry is put, and the first answers never arrive: the client tries again, and is refused."""
    stage = filled(s3_root)
    with LosingAnswers(s3_bucket.port, lost) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{between.port}")
        place_at.cache_clear()
        stage.finish(checkpoint=s3_bucket.uri(stage.checkpoint))
    assert between.lost >= lost * len(GOOD)
    assert stage.results() == stage.expected(*GOOD)
    one_line(stage)


@pytest.mark.parametrize("readable", [True, False])
def test_a_put_that_fails_after_all_tries_may_have_succeeded(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    durable, put = place(s3_bucket.uri(s3_root)), obstore.put

    def fail(*_: Any, **__: Any) -> Any:
        raise GenericError("the wire was cut")

    def put_and_fail(*given: Any, **options: Any) -> Any:
        put(*given, **options)
        fail()

    monkeypatch.setattr(obstore, "put", put_and_fail)
    if readable:
        assert durable.put("manifests/0", b"token", True)
        return
    monkeypatch.setattr(obstore, "get", fail)
    with pytest.raises(StateError, match="the next start finds out whether it counts"):
        durable.put("manifests/0", b"token", True)


def test_an_entry_of_another_is_told_from_ones_own(s3_bucket: ServedBucket, s3_root: Path) -> None:
    durable = place(s3_bucket.uri(s3_root))
    assert durable.put("manifests/0", b"token of one", True)
    assert not durable.put("manifests/0", b"token of another", True)
    assert durable.put("manifests/0", b"token of one", True)
    assert durable.read("manifests/0") == b"token of one"


def test_a_store_that_overwrites_what_must_be_absent_is_refused(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_place, "_PROVEN", set())
    put = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *given, mode=None: put(*given))
    stage = filled(s3_root)
    told = stage.refused(StateError, checkpoint=s3_bucket.uri(stage.checkpoint))
    assert "does not refuse a put of an object that is there" in told
    assert manifests(stage.checkpoint) == []


def test_a_damaged_object_is_found_by_its_checksum(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(s3_root)
    checkpoint = s3_bucket.uri(stage.checkpoint)
    half(stage, checkpoint)
    assert ask("verify", checkpoint)["damaged"] == []
    file = next(file for file in manifests(stage.checkpoint)[-1].files() if file.endswith("arrow"))
    data = bytearray((stage.checkpoint / file).read_bytes())
    data[len(data) // 2] ^= 1
    (stage.checkpoint / file).write_bytes(data)
    change_machine(monkeypatch, tmp_path / "other")
    found = ask("verify", checkpoint, code=1)["damaged"]
    assert [one["file"] for one in found] == [file]
    stage.write(3, GOOD[3])
    told = stage.refused(StateError, checkpoint=checkpoint)
    assert f"{checkpoint}/{file}" in told
    assert "its checksum is" in told


def test_savepoints_go_to_s3_and_back(
    s3_bucket: ServedBucket, s3_root: Path, tmp_path: Path
) -> None:
    stage = Stage(s3_root)
    checkpoint = s3_bucket.uri(stage.checkpoint)
    half(stage, checkpoint)
    assert [one["epoch"] for one in ask("list", checkpoint)][-1] == 2
    assert ask("describe", checkpoint)["streams"]["rows"]["rows"] == 120
    folder, copied = tmp_path / "folder", s3_bucket.uri(s3_root / "copied")
    assert ask("copy", checkpoint, folder)["epoch"] == 2
    assert ask("copy", folder, copied)["epoch"] == 2
    assert ask("verify", copied)["damaged"] == []
    rest(stage, copied)
    assert stage.results() == stage.expected(*GOOD)


def test_what_cannot_be_reached_is_told_in_one_line(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = filled(s3_root)
    told = stage.refused(StateError, checkpoint="s3://no-such-bucket/checkpoint")
    assert "is there a bucket 'no-such-bucket'?" in told
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    place_at.cache_clear()
    told = stage.refused(StateError, checkpoint=s3_bucket.uri(stage.checkpoint))
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY do not let this user in" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "uri", ["s3://", "s3:///folder", "s3://key:secret@bucket/a", "s3://b/a?region=x", "s3://b/a//c"]
)
def test_a_uri_that_says_more_than_bucket_and_folder_is_refused(uri: str) -> None:
    with pytest.raises(StateError, match="expected s3://bucket/folder"):
        place(uri)


def test_without_the_extra_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anabranch.state.object_place", None)
    with pytest.raises(StateError, match=r"pip install 'anabranch\[s3\]'"):
        place("s3://bucket/without-the-extra")
