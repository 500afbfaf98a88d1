"""Random query sets in SQL, whole from text to rows, each at two partitionings, beside DuckDB.

Both sides read the same question in their own words: a query is drawn as our SQL and as DuckDB's, so a
fault in reading the text shows as well. A set has queries over the stream and queries over those, with
keys that are columns, masks, quotients and prefixes of others, so that some sets suit all, some few.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from hypothesis import given, note
from hypothesis import strategies as st

from anabranch import Session
from anabranch.language.expression import Expression, Named
from anabranch.operators.stateless import compute
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.routing.hashing import hash_columns
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.sources import EpochSource
from helpers import examples

EXAMPLES = 300
COLUMNS = ("srcIP", "destIP", "port", "len")
KEYS = (
    "srcIP",
    "destIP",
    "port",
    "srcIP & 0xF0",
    "srcIP & 0xFC",
    "destIP / 4",
    "port % 4",
    "srcIP >> 3",
    "load",
    "CAST(load AS VARCHAR)",
)
VALUES = ("len", "port", "len + port", "CASE WHEN len > 500 THEN 1 ELSE 0 END")
AGGREGATES = ("COUNT(*)", "SUM({})", "MIN({})", "MAX({})", "COUNT(DISTINCT {})", "AVG({})")
FILTERS = (
    "len > 300",
    "destIP <> 3",
    "srcIP IN (1, 2, 17, 40, 200)",
    "port BETWEEN 10 AND 60",
    "port & 1 = 0",
)


@dataclass(frozen=True)
class Drawn:
    """A query in both languages, and the columns that others may group by or add up."""

    name: str
    ours: str
    theirs: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    other: tuple[str, ...]
    """The keys that are no whole numbers."""


@dataclass
class QuerySet:
    queries: list[Drawn] = field(default_factory=list)

    def ours(self) -> str:
        return "\n".join(f"{query.name}: {query.ours}" for query in self.queries)


def theirs(text: str) -> str:
    """An expression as DuckDB writes it: hexadecimal numbers and whole division differ."""
    for hexadecimal in ("0xF0", "0xFC"):
        text = text.replace(hexadecimal, str(int(hexadecimal, 16)))
    return text.replace(" / ", " // ")


@st.composite
def query_sets(draw: st.DrawFn) -> QuerySet:
    made = QuerySet()
    for number in range(draw(st.integers(1, 3))):
        made.queries.append(over_stream(draw, f"q{number}"))
    for number in range(draw(st.integers(0, 2))):
        below = draw(st.sampled_from(made.queries))
        if below.keys and below.values:
            made.queries.append(over_query(draw, f"v{number}", below))
    return made


def over_stream(draw: st.DrawFn, name: str) -> Drawn:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=3, unique=True))
    named = [(f"k{at}", key) for at, key in enumerate(keys)]
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True))
    calls = [call.format(draw(st.sampled_from(VALUES))) for call in chosen]
    where = draw(st.sampled_from(["", *(f" WHERE {text}" for text in FILTERS)]))
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1", " HAVING MAX(len) > 400"]))
    size = draw(st.sampled_from([10, 30, 60]))
    return build(name, "tcp", f"time / {size}", named, calls, where, having)


def over_query(draw: st.DrawFn, name: str, below: Drawn) -> Drawn:
    keys = draw(st.lists(st.sampled_from(below.keys), max_size=2, unique=True))
    whole = [key for key in below.keys if key not in below.other]
    masked = [
        draw(st.sampled_from([key, f"{key} & 0xF0"])) if key in whole else key for key in keys
    ]
    named = [(f"j{at}", key) for at, key in enumerate(masked)]
    value = draw(st.sampled_from(below.values))
    calls = [draw(st.sampled_from(["COUNT(*)", f"SUM({value})", f"MAX({value})"]))]
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1"]))
    window = draw(st.sampled_from(["tb", "tb / 2"]))
    made = build(name, below.name, window, named, calls, "", having)
    return replace(made, other=tuple(alias for alias, key in named if key in below.other))


def build(
    name: str, source: str, window: str, keys: list[tuple[str, str]], calls: list[str], where: str,
    having: str,
) -> Drawn:  # fmt: skip
    values = [f"a{at}" for at in range(len(calls))]
    named = [f"{call} AS {value}" for call, value in zip(calls, values, strict=True)]
    listed = ["tb", *(alias for alias, _ in keys), *named]
    groups = [f"{window} AS tb", *(f"{key} AS {alias}" for alias, key in keys)]
    ours = f"SELECT {', '.join(listed)} FROM {source}{where} GROUP BY {', '.join(groups)}{having}"
    other = f"SELECT {', '.join([*groups, *named])} FROM {source}{where} GROUP BY ALL{having}"
    whole = tuple(v for v, call in zip(values, calls, strict=True) if not call.startswith("AVG"))
    texts = tuple(alias for alias, key in keys if "load" in key)
    return Drawn(name, ours, theirs(other), tuple(alias for alias, _ in keys), whole, texts)


def packets(seed: int, rows: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "time": np.sort(random.integers(0, 240, rows)),
            "srcIP": random.integers(0, 256, rows),
            "destIP": random.integers(0, 12, rows),
            "port": random.integers(0, 80, rows),
            "len": random.integers(40, 1500, rows),
            "load": random.choice([0.0, -0.0, 0.5, 2.0], rows),
        }
    )


@examples(EXAMPLES, part=10)
@given(
    made=query_sets(),
    seed=st.integers(0, 1000),
    rows=st.integers(1, 400),
    sites=st.sampled_from([1, 2, 3]),
    pick=st.integers(0, 20),
    central=st.booleans(),
    lanes=st.sampled_from([0, 0, 3]),
)
def test_equal_at_two_partitionings(
    made: QuerySet, seed: int, rows: int, sites: int, pick: int, central: bool, lanes: int
) -> None:
    note(made.ours())
    data = packets(seed, rows)
    with duckdb.connect() as duck:
        duck.register("tcp", data.to_arrow())
        for query in made.queries:
            duck.execute(f"CREATE VIEW {query.name} AS {query.theirs}")
        expected = {query.name: duck.sql(f"FROM {query.name}").pl() for query in made.queries}
    known = session(made, [data], sites).partitioning().parts[0].candidates
    first = pick % len(known)
    for at in {first, (first + 1) % len(known)}:
        chosen = known[at].partitioning
        note(f"partitioned by {chosen}")
        if lanes and chosen.axes:
            with tempfile.TemporaryDirectory() as folder:
                write_lanes(data, Path(folder), lanes, chosen.terms("tcp"))
                terms = chosen.terms("tcp")
                here = session(made, folder, sites, partitioned_by=terms, central=central)
                run_at(here, made, chosen, expected)
        else:
            run_at(session(made, cut(data), sites, central=central), made, chosen, expected)
    if len(known) == 1:
        run_at(session(made, cut(data), sites, strategy="query"), made, None, expected)


def cut(data: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of each epoch."""
    return list(data.iter_slices(max(1, (data.height + 1) // 2)))


def write_lanes(
    data: pl.DataFrame, folder: Path, lanes: int, terms: tuple[Expression, ...]
) -> None:
    """An epoch is one file in each lane."""
    named = [Named(f"term{at}", term) for at, term in enumerate(terms)]
    for epoch, rows in enumerate(cut(data)):
        number = hash_columns(compute(rows, named).get_columns(), rows.height) % np.uint64(lanes)
        for lane in range(lanes):
            path = folder / str(lane) / f"{epoch}.parquet"
            path.parent.mkdir(exist_ok=True)
            rows.filter(pl.Series(number == lane)).write_parquet(path)
            os.utime(path, (epoch, epoch))


def session(
    made: QuerySet, source: list[pl.DataFrame] | str, sites: int,
    partitioned_by: tuple[Expression, ...] = (), **given: object,
) -> Session:  # fmt: skip
    """A session over frames, or over a folder of lanes."""
    settings = {"fsync": False, "partitions_per_site": 4, "max_files_per_epoch": 3, **given}
    here = Session.in_process(sites, settings)
    if isinstance(source, str):
        here.stream("tcp", path=source, ordered="time", partitioned_by=partitioned_by)
    else:
        here.stream("tcp", EpochSource(source), ordered="time")
    for query in made.queries:
        here.query(query.name, query.ours)
    return here


def run_at(
    here: Session, made: QuerySet, chosen: PartitioningSet | None, expected: dict[str, pl.DataFrame]
) -> None:
    """Runs the set with one permitted partitioning, and compares all results."""
    if chosen is not None:
        here.permit({stream: chosen.terms(stream) for stream in chosen.streams})
        assert here.partitioning().partitioning == chosen
    run = here.start(sinks={query.name: "memory" for query in made.queries}, at_end="close")
    assert run.await_termination(60)
    for query in made.queries:
        found, wanted = run.results(query.name), expected[query.name]
        alike = wanted.select(pl.col(name).cast(kind) for name, kind in found.schema.items())
        assert_same_rows(found, alike, where=query.ours)
