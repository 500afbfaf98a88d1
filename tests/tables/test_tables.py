"""What every kind of table does with results: rows once, groups replaced and gone, columns, mistakes."""

from __future__ import annotations

import datetime as dt
import errno
import shutil
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from shelf import KINDS, Kind, rows_of, run

from anabranch.errors import PlanningError, RunError, SettingsError, StateError
from anabranch.sinks.tables import writer as writing
from anabranch.sinks.tables.table import Conflict
from helpers import oracle

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def frames(epochs: int, rows: int = 60, seed: int = 5) -> list[pl.DataFrame]:
    random = np.random.default_rng(seed)
    return [
        pl.DataFrame(
            {
                "time": np.sort(random.integers(10 * number, 10 * number + 10, rows)),
                "k": [None if n == 0 else f"k{n}" for n in random.integers(0, 7, rows)],
                "v": random.integers(0, 100, rows),
            }
        )
        for number in range(epochs)
    ]


@kinds
def test_rows_are_added_once(tmp_path: Path, kind: Kind) -> None:
    given = frames(4)
    run(given, {"q": ("SELECT time, k, v FROM t WHERE v > 5", None)},
        {"q": kind.sink(tmp_path, "q")})  # fmt: skip
    wanted = oracle("SELECT time, k, v FROM t WHERE v > 5", t=pl.concat(given))
    assert kind.duck(tmp_path, "q") == wanted
    assert rows_of(kind.read(tmp_path, "q")) == wanted


@kinds
def test_groups_are_replaced_and_leave(tmp_path: Path, kind: Kind) -> None:
    """With NULL among the keys; conditions that a group meets, then fails, then meets again."""
    given = frames(6)
    texts = {
        "live": "SELECT k, MIN(v) AS m, COUNT(*) AS n FROM t GROUP BY k HAVING SUM(v) % 3 > 0",
        "windows": "SELECT time // 5 AS tb, k, SUM(v) AS s FROM t GROUP BY time // 5, k",
        "all": "SELECT COUNT(*) AS n, MAX(v) AS top FROM t",
    }
    run(given, {name: (text, "update") for name, text in texts.items()},
        {name: kind.sink(tmp_path, name) for name in texts})  # fmt: skip
    for name, text in texts.items():
        wanted = oracle(text.replace("SUM(v) AS s", "SUM(v)::BIGINT AS s"), t=pl.concat(given))
        assert rows_of(kind.read(tmp_path, name)) == wanted, name
        assert kind.duck(tmp_path, name) == wanted, name


@kinds
def test_every_change_is_kept_on_request(tmp_path: Path, kind: Kind) -> None:
    given = frames(3)
    text = "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING SUM(v) % 3 > 0"
    run(given, {"q": (text, "update")}, {"q": kind.sink(tmp_path, "q", updates="append")})
    kept = kind.read(tmp_path, "q")
    assert kept.columns == ["k", "n", "gone"]
    assert kept.height > 7
    assert kept["gone"].any()


@kinds
def test_updates_without_their_keys_are_refused(tmp_path: Path, kind: Kind) -> None:
    text = "SELECT n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)"
    with pytest.raises(SettingsError, match="lack a column that the groups are told apart by"):
        run(frames(1), {"q": (text, "update")}, {"q": kind.sink(tmp_path, "q")})


@kinds
def test_every_type_comes_back(tmp_path: Path, kind: Kind) -> None:
    given = pl.DataFrame(
        {
            "time": [1, 2],
            "i8": pl.Series([-128, None], dtype=pl.Int8),
            "u8": pl.Series([255, None], dtype=pl.UInt8),
            "u32": pl.Series([2**32 - 1, 0], dtype=pl.UInt32),
            "u64": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
            "f": [float("nan"), -0.5],
            "f32": pl.Series([1.5, None], dtype=pl.Float32),
            "b": [True, None],
            "s": ['a"b\\n,\n', ""],
            "x": [b"\x00\xff", None],
            "d": [dt.date(2026, 11, 18), None],
            "ts": [dt.datetime(2026, 11, 18, 5, 0, 0, 123456), None],
            "z": pl.Series([dt.datetime(2026, 1, 1), None]).dt.replace_time_zone("Europe/Berlin"),
            "dec": pl.Series([Decimal("123.45"), None], dtype=pl.Decimal(38, 2)),
            'an "odd" name': [7, None],
        }
    )
    columns = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in given.columns)
    run([given], {"q": (f"SELECT {columns} FROM t", None)}, {"q": kind.sink(tmp_path, "q")})
    found = kind.read(tmp_path, "q").sort("time")
    assert found.columns == given.columns
    for name in given.columns:
        before, after = given[name].to_list(), found[name].to_list()
        assert repr([None if v is None else v for v in _plain(after)]) == repr(_plain(before)), name


def _plain(values: list[object]) -> list[object]:
    """Whole numbers whatever their type, times in UTC whatever their zone."""
    plain: list[object] = []
    for value in values:
        if isinstance(value, Decimal) and value == int(value):
            value = int(value)
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        plain.append(value)
    return plain


@pytest.mark.parametrize(
    ("name", "column", "told"),
    [
        *((name, pl.Series("x", [dt.time(1, 2)]), "time") for name in ("delta", "iceberg")),
        *(
            (
                name,
                pl.Series("x", [dt.datetime(2026, 1, 1)], dtype=pl.Datetime("ns")),
                "microseconds",
            )
            for name in KINDS
        ),
    ],
)
def test_types_that_a_table_lacks_are_refused(
    tmp_path: Path, name: str, column: pl.Series, told: str
) -> None:
    kind = KINDS[name]
    given = pl.DataFrame({"time": [1], "x": column})
    with pytest.raises(SettingsError, match=f"no type for column 'x'.*{told}"):
        run([given], {"q": ("SELECT time, x FROM t", None)}, {"q": kind.sink(tmp_path, "q")})


@kinds
def test_another_schema_is_refused_or_the_table_gets_the_columns(
    tmp_path: Path, kind: Kind
) -> None:
    given = frames(2)
    run(given, {"q": ("SELECT time, v FROM t", None)}, {"q": kind.sink(tmp_path, "q")})
    more = {"q": ("SELECT time, v, k FROM t", None)}
    with pytest.raises(SettingsError, match=r"has no column 'k'.*evolve=True"):
        run(given, more, {"q": kind.sink(tmp_path, "q")})
    with pytest.raises(SettingsError, match="has column 'v' as int64, but the results have"):
        run(given, {"q": ("SELECT time, CAST(v AS STRING) AS v FROM t", None)},
            {"q": kind.sink(tmp_path, "q")})  # fmt: skip
    run(given, more, {"q": kind.sink(tmp_path, "q", evolve=True)})
    whole = pl.concat(given)
    wanted = oracle("SELECT time, v, NULL::TEXT AS k FROM t UNION ALL SELECT time, v, k FROM t",
                    t=whole)  # fmt: skip
    assert rows_of(kind.read(tmp_path, "q")) == wanted


@kinds
def test_two_queries_cannot_have_one_table(tmp_path: Path, kind: Kind) -> None:
    with pytest.raises(PlanningError, match="'a' and 'b' have the same"):
        run(frames(1), {"a": ("SELECT time FROM t", None), "b": ("SELECT time FROM t", None)},
            {"a": kind.sink(tmp_path, "q"), "b": kind.sink(tmp_path, "q")})  # fmt: skip


@kinds
def test_an_older_checkpoint_is_refused(tmp_path: Path, kind: Kind) -> None:
    """The table has more of the run than the checkpoint knows."""
    queries: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, v FROM t", None)}
    given = frames(4)
    run(given[:2], queries, {"q": kind.sink(tmp_path, "q")}, tmp_path / "ck", "keep")
    shutil.copytree(tmp_path / "ck", tmp_path / "old")
    run(given, queries, {"q": kind.sink(tmp_path, "q")}, tmp_path / "ck", "keep")
    shutil.rmtree(tmp_path / "ck")
    shutil.move(tmp_path / "old", tmp_path / "ck")
    with pytest.raises(StateError, match="it is an older copy"):
        run(given, queries, {"q": kind.sink(tmp_path, "q")}, tmp_path / "ck", "keep")


@kinds
def test_conflicts_are_tried_again_and_then_told(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FIRST_WAIT", 0.0)
    queries: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, v FROM t", None)}
    sink, given = kind.sink(tmp_path, "q"), frames(2)
    opened = sink.open
    failures = iter([True, False, True])

    def disturbed(context: object) -> object:
        writer = opened(context)
        persist = writer.table.reached

        def reached(app: str) -> int | None:
            if next(failures, False):
                raise Conflict
            return persist(app)

        writer.table.reached = reached
        writer.recover = lambda epoch: setattr(writer, "_recovered", True)
        return writer

    monkeypatch.setattr(type(sink), "open", lambda self, context: disturbed(context))
    run(given, queries, {"q": sink})
    assert kind.read(tmp_path, "q").height == sum(map(len, given))
    failures = iter([True] * 100)
    with pytest.raises(RunError, match=r"others changed the table each of 12 times.*committed"):
        run(given, queries, {"q": sink})


def test_a_missing_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SettingsError, match=r"pip install 'anabranch\[delta\]'"):
        run(
            frames(1),
            {"q": ("SELECT time FROM t", None)},
            {"q": {"path": tmp_path / "q", "format": "delta"}},
        )


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_care_that_fails_is_told_once_and_the_run_goes_on(tmp_path: Path, kind: str) -> None:
    """Somebody has deleted a file of the table, so that small files cannot be brought together."""
    table, given = KINDS[kind], frames(4)
    queries: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}
    run(given[:1], queries, {"q": table.sink(tmp_path, "q")}, sites=1)
    lost = max(tmp_path.rglob("*.parquet"))
    content = lost.read_bytes()
    lost.unlink()
    with pytest.warns(UserWarning, match="small files could not be brought together") as told:
        run(given[1:], queries, {"q": table.sink(tmp_path, "q", optimize=1)}, sites=1)
    assert len([one for one in told if "brought together" in str(one.message)]) == 1
    lost.write_bytes(content)
    assert rows_of(table.read(tmp_path, "q")) == rows_of(pl.concat(given))


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_files_that_no_version_names_yet_may_be_swept_away(
    tmp_path: Path, kind: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash came when files lay in the table's folder, and before its commit; then a vacuum by others."""
    table, given = KINDS[kind], frames(3)
    sink = table.sink(tmp_path, "q", optimize=0)
    queries: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}
    if not links:
        monkeypatch.setattr(writing.os, "link", _no_links)
    run(given[:1], queries, {"q": sink}, tmp_path / "ck", "keep")
    named = set(_data_files(tmp_path))
    opened = type(sink).open

    def failing(sink: object, context: object) -> object:
        writer = opened(sink, context)
        writer.table.adopt = _crash
        return writer

    with monkeypatch.context() as patched:
        patched.setattr(type(sink), "open", failing)
        with pytest.raises(RunError, match="will be handed over again"):
            run(given, queries, {"q": sink}, tmp_path / "ck", "keep")
    swept = set(_data_files(tmp_path)) - named
    assert swept
    for path in swept:
        path.unlink()
    run(given, queries, {"q": sink}, tmp_path / "ck", "keep")
    assert rows_of(table.read(tmp_path, "q")) == rows_of(pl.concat(given))
    assert not list(tmp_path.rglob("_epoch=*")), "what waited is gone"


def _data_files(root: Path) -> list[Path]:
    """The files where the table has its own, as a vacuum sees them."""
    return [path for path in root.rglob("*.parquet") if writing.STAGED not in path.parts]


def _no_links(*_: object) -> None:
    raise OSError(errno.EPERM, "no links here")


def _crash(*_: object) -> None:
    raise OSError("killed")
