"""Files that were read stay, are deleted or archived; never before their epoch is visible."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import AnabranchError, SourceError
from helpers import plain, read_results, sample

FILES = 4


def write(root: Path, numbers: range) -> None:
    for number in numbers:
        path = root / "in" / f"day={number % 2}" / f"{number:04d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        sample(number).write_parquet(path)


def start(
    root: Path, stop_at: tuple[str, int] | None = None, least: int = 0, **options: object
) -> None:
    session = Session.in_process(2, {"fsync": False, "max_files_per_epoch": 1})
    session.stream("rows", path=root / "in", format="parquet", ordered="time", lateness=1000,
                   file_order="name", **options)  # fmt: skip
    session.query("q", "SELECT time, k, v FROM rows")

    def look(step: str, epoch: int) -> None:
        if step in ("before-commit", "after-commit"):
            # What is not visible yet may be read again
            assert len(names(root / "in")) >= least - epoch
        if (step, epoch) == stop_at:
            raise KeyError("stopped here")

    session.start(
        sinks={"q": root / "out"}, checkpoint=root / "checkpoint", on_step=look
    ).await_termination()


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


@pytest.mark.parametrize("way", ["delete", "archive"])
def test_files_go_once_they_are_read(tmp_path: Path, way: str) -> None:
    write(tmp_path, range(FILES))
    archive = {"archive": tmp_path / "done"} if way == "archive" else {}
    before = names(tmp_path / "in")
    with pytest.raises(AnabranchError, match="stopped here"):
        start(tmp_path, ("after-publish", 1), FILES, clean_source=way, **archive)
    # The second was read and is visible, but the stream has not been told
    assert len(names(tmp_path / "in")) == FILES - 1
    start(tmp_path, None, FILES, clean_source=way, **archive)
    assert names(tmp_path / "in") == []
    if way == "archive":
        assert names(tmp_path / "done") == before
    wanted = pl.concat(sample(number) for number in range(FILES))
    assert plain(read_results(tmp_path / "out").select("time", "k", "v")) == plain(wanted)


def test_files_that_were_read_before_are_cleaned_too(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    start(tmp_path)
    assert len(names(tmp_path / "in")) == 2
    write(tmp_path, range(2, 4))
    start(tmp_path, clean_source="delete")
    assert names(tmp_path / "in") == []


def test_a_file_that_was_replaced_meanwhile_stays(tmp_path: Path) -> None:
    write(tmp_path, range(1))
    session = Session.in_process(1, {"fsync": False})
    session.stream("rows", path=tmp_path / "in", format="parquet", ordered="time",
                   clean_source="delete")  # fmt: skip
    session.query("q", "SELECT time FROM rows")

    def replace(step: str, epoch: int) -> None:
        if (step, epoch) == ("after-publish", 0):
            write(tmp_path, range(1))

    session.start(sinks={"q": "memory"}, on_step=replace).await_termination()
    assert len(names(tmp_path / "in")) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"clean_source": "burn"}, "clean_source is 'burn'; expected one of off, delete, archive"),
        ({"clean_source": "archive"}, "belong together"),
        ({"clean_source": "delete", "archive": "done"}, "belong together"),
        ({"clean_source": "archive", "archive": "in/done"}, "would read its files again"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path, options: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, range(1))
    with pytest.raises(SourceError, match=told):
        start(tmp_path, **options)
    with pytest.raises(SourceError, match="no option 'clean_source'"):
        Session.in_process(1).stream(
            "s", generator="packets", ordered="time", clean_source="delete"
        )
