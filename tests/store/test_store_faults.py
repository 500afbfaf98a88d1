"""Runs whose S3 server fails: errors, answers that get lost, silence, connections cut; results stay exact."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rivalry import one_line

from anabranch.errors import AnabranchError
from anabranch.state.place import place_at
from anabranch.testing import course
from anabranch.testing.chaos import draw_seed
from anabranch.testing.trial import check
from anabranch.testing.wire import FAULTS, Request, Wire, seeded_faults
from helpers import Stage, in_soak, manifests, missing, sample
from s3_server import ServedBucket

pytestmark = pytest.mark.chaos

FILES = 3


def through(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the server is reached over this wire; whoever waits has had enough after a second."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{wire.port}")
    monkeypatch.setattr("anabranch.state.bucket.PATIENCE", {"timeout": timedelta(seconds=1)})
    place_at.cache_clear()


def all_in_the_bucket(stage: Stage, bucket: ServedBucket) -> None:
    """A run whose stream, results and checkpoint are in the bucket."""
    session = stage.session(path=bucket.uri(stage.input), file_order="name")
    stage.run(
        session, checkpoint=bucket.uri(stage.checkpoint), sinks={"sums": bucket.uri(stage.out)},
        at_end="close",
    )  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_run_comes_through_faults_of_one_kind(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stage = Stage(s3_root)
    for number in range(FILES):
        stage.write(number)
    share = 0.05 if kind == "silent" else 0.2
    with Wire(s3_bucket.port, seeded_faults(7, share, (kind,))) as wire:
        through(wire, monkeypatch)
        all_in_the_bucket(stage, s3_bucket)
    assert wire.faults[kind] > 0
    assert stage.results() == stage.expected(*map(sample, range(FILES)))
    assert missing(stage.checkpoint) == set()
    one_line(stage)


@pytest.mark.parametrize("seed", [1, *in_soak(range(2, 30))])
def test_faults_of_all_kinds_and_restarts_leave_results_exact(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    stage = Stage(s3_root)
    with Wire(s3_bucket.port, seeded_faults(seed, 0.1, ("error", "lost", "cut"))) as wire:
        through(wire, monkeypatch)
        for number in range(FILES):
            stage.write(number)
            session = stage.session(path=s3_bucket.uri(stage.input), file_order="name")
            stage.run(
                session,
                checkpoint=s3_bucket.uri(stage.checkpoint),
                sinks={"sums": s3_bucket.uri(stage.out)},
                at_end="close" if number == FILES - 1 else "keep",
            )
    assert sum(wire.faults.values()) > 5, seed
    assert stage.results() == stage.expected(*map(sample, range(FILES))), seed
    one_line(stage)


def test_a_store_that_goes_away_stops_the_run_and_the_next_start_goes_on(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(s3_root)
    for number in range(FILES):
        stage.write(number)
    away = [False]

    def gone(request: Request) -> str | None:
        away[0] = away[0] or (request.conditional and "00000002" in request.target)
        return "error" if away[0] else None

    few = {"max_retries": 1}
    monkeypatch.setattr("anabranch.state.bucket.RETRIES", few)
    with Wire(s3_bucket.port, gone) as wire:
        through(wire, monkeypatch)
        with pytest.raises(AnabranchError) as caught:
            all_in_the_bucket(stage, s3_bucket)
    assert away[0]
    assert "secret" not in str(caught.value)
    through_again = s3_bucket.variables["AWS_ENDPOINT_URL"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", through_again)
    place_at.cache_clear()
    all_in_the_bucket(stage, s3_bucket)
    assert stage.results() == stage.expected(*map(sample, range(FILES)))


@pytest.mark.parametrize("seed", [3, *in_soak(range(100, 150))])
def test_chaos_with_the_checkpoint_on_the_server(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(course, "far_uri", s3_bucket.uri)
    monkeypatch.setattr(tempfile, "tempdir", str(s3_root))
    case, trial = draw_seed(seed)
    # A second driver finds no lock to delete here: rivals have tests of their own. Moves from afar go on when
    # no rows come, in epochs that the oracle does not know
    trial = replace(trial, far=True, rival=None, damage=None, silences={})
    with Wire(s3_bucket.port, seeded_faults(seed, 0.02, ("error", "lost"))) as wire:
        through(wire, monkeypatch)
        outcome = check(case, trial)
    assert outcome.manifests, seed
    assert wire.requests
    shutil.rmtree(s3_root, ignore_errors=True)


def test_what_the_wire_counts_is_what_a_store_would_charge(
    s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(s3_root)
    stage.write(0)
    with Wire(s3_bucket.port) as wire:
        through(wire, monkeypatch)
        all_in_the_bucket(stage, s3_bucket)
    kinds = {request.kind for request in wire.requests}
    assert {"GET", "PUT", "LIST", "HEAD"} <= kinds
    assert manifests(stage.checkpoint)[-1].ended
