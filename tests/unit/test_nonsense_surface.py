"""Any argument of any public method, by its signature: what comes back is a result or an error of ours.

Right results are of no account here. What reaches other machines is left out: clusters and brokers.
"""

from __future__ import annotations

import contextlib
import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.errors import AnabranchError
from anabranch.language.builder import Query

LETTERS = "ax0 -_*é'\"\x00\ud800"
"""None that leads out of a folder or to another machine."""
NONSENSE: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -5,
    2**31,
    2**63,
    2**70,
    b"bytes",
    (),
    pl.DataFrame(),
    print,
]
NONSENSE += [
    col("nothing"),
    count(),
    object(),
    pl.Int64,
    {"a": None},
    [None],
    10**400,
    random.Random,
]

plain = st.one_of(
    st.sampled_from(NONSENSE), st.integers(), st.floats(), st.text(LETTERS, max_size=8)
)
anything = st.one_of(
    plain,
    st.lists(plain, max_size=3),
    st.dictionaries(st.text(LETTERS, max_size=2), plain, max_size=2),
)

RIGHT: dict[str, Callable[[Any], Any]] = {
    "name": lambda it: "t",
    "query": lambda it: "q" if isinstance(it, Run) else "SELECT time FROM t",
    "source": lambda it: None,
    "ordered": lambda it: "time",
    "path": lambda it: Path("rows"),
    "body": lambda it: lambda x: x,
    "arguments": lambda it: ["bigint"],
    "result": lambda it: "bigint",
    "sinks": lambda it: {"q": "memory"},
    "subquery": lambda it: "q@1",
    "partition": lambda it: 0,
    "site": lambda it: 1,
    "partition_map": lambda it: it.partition_map("q@1"),
    "shape": lambda it: "flat",
    "sites": lambda it: 2,
    "listener": lambda it: print,
    "other": lambda it: it,
    "on": lambda it: "len",
    "predicate": lambda it: col("len") > 3,
    "rows": lambda it: 3,
    "keys": lambda it: ("len",),
    "columns": lambda it: ("len",),
    "predicates": lambda it: (col("len") > 3,),
    "others": lambda it: (it,),
    "sets": lambda it: ({"t": ["len"]},),
}
"""What a parameter gets that must have something, where the nonsense goes elsewhere."""
OPTIONS = ("growing", "clean_source", "types", "rename", "late", "on_late", "lanes", "delimiter", "nulls",
           "time_format", "header", "on_bad", "rate", "generator", "key", "ordered", "days")  # fmt: skip
"""Of what takes any option by its name."""
WAITS = {"await_termination"}
"""What waits as long as it is told."""
OTHERS = {"cluster", "local", "package", "stop", "page"}
"""What starts Spark, writes elsewhere, ends a run or opens a port."""


def methods(of: type) -> list[str]:
    return [
        name
        for name in sorted(dir(of))
        if not name.startswith("_")
        and inspect.isfunction(getattr(of, name)) | inspect.ismethod(getattr(of, name))
        and len(inspect.signature(getattr(of, name)).parameters)
        > inspect.isfunction(getattr(of, name))
        and name not in OTHERS | WAITS
    ]


def given_to(method: Callable[..., Any], it: Any, data: st.DataObject) -> Callable[[], Any]:
    """A call of the method with nonsense for one or two of its parameters."""
    known = {
        name: one for name, one in inspect.signature(method).parameters.items() if name != "self"
    }
    wrong = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1, max_size=2))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, one in known.items():
        if one.kind is one.VAR_KEYWORD:
            if name in wrong:
                named[data.draw(st.sampled_from(OPTIONS))] = data.draw(anything)
        elif one.kind is one.VAR_POSITIONAL:
            positional += [data.draw(anything)] if name in wrong else RIGHT[name](it)
        elif name in wrong:
            named[name] = data.draw(anything)
        elif one.default is one.empty or (name == "path" and "source" in known):
            named[name] = RIGHT[name](it)
    if positional:
        named = {
            name: value
            for name, value in named.items()
            if known[name].kind is known[name].KEYWORD_ONLY
        }
    return lambda: method(*positional, **named)


def made() -> Session:
    session = Session.in_process(sites=2)
    session.stream("t", generator="packets", rows=10, ordered="time")
    session.query("q", "SELECT tb, COUNT(*) AS n FROM t GROUP BY time/60 AS tb")
    return session


def sharply(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples, deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    pl.DataFrame({"time": [1, 2], "len": [3, 4]}).write_parquet(tmp_path / "rows" / "a.parquet")


@pytest.mark.parametrize("name", methods(Query))
@sharply(25)
@given(data=st.data())
def test_queries(name: str, data: st.DataObject) -> None:
    query = made().from_stream("t")
    call = given_to(getattr(query, name), query, data)
    with contextlib.suppress(AnabranchError):
        call()


@pytest.mark.parametrize("name", [name for name in methods(Session) if name != "start"])
@sharply(25)
@given(data=st.data())
def test_sessions(name: str, data: st.DataObject) -> None:
    session = made()
    call = given_to(getattr(session, name), session, data)
    with contextlib.suppress(AnabranchError):
        call()


@sharply(50)
@given(data=st.data())
def test_starts(data: st.DataObject) -> None:
    session = made()
    call = given_to(session.start, session, data)
    with contextlib.suppress(AnabranchError):
        call().stop()


@pytest.fixture
def run() -> Iterator[Run]:
    run = made().start(sinks={"q": "memory"}, trigger="continuous")
    yield run
    run.stop()
    assert run.exception() is None


@pytest.mark.parametrize("name", methods(Run))
@sharply(20)
@given(data=st.data())
def test_runs(name: str, run: Run, data: st.DataObject) -> None:
    call = given_to(getattr(run, name), run, data)
    with contextlib.suppress(AnabranchError):
        call()
