"""How the cost of an epoch goes with what there is: cores, rows of state, queries, files, sites.

W1 and W2 through Spark on one core and on two; the other parts on two. What `bench state-growth`,
`bench sharing` and `bench driver` measure is measured as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.aggregate import WINDOW
from anabranch.bench.data import Events, w1
from anabranch.bench.driver import time_of_driver
from anabranch.bench.jobs import JobOutcome, Ours, run_job
from anabranch.bench.join import W2
from anabranch.bench.join_oracle import digest_of_join, digest_of_results
from anabranch.bench.join_series import ROWS as JOIN_ROWS
from anabranch.bench.many_files import ROWS as FILE_ROWS
from anabranch.bench.many_files import time_files
from anabranch.bench.measure import load, machine
from anabranch.bench.oracle import BenchOracle
from anabranch.bench.result import Result, describe_spread, rates
from anabranch.bench.sharing import run_shared, write_numbers
from anabranch.bench.state_growth import run_state_growth
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

FILES = 10
REPEATS = 3
COUNTS = (1, 10, 100)
QUERY_ROWS = 200_000
"""Of an epoch that several queries read."""
KEYS = 1_000
SEEN = (20, 10_000)
"""Files that were read before those that are timed."""
SITES = (8, 64, 256)
DRIVER_EPOCHS = 40
NOTES = (
    "cores: rows/s of W1 and W2 at one file an epoch on local[1] with one site and local[2] with two; "
    "speedup_2_cores is the lesser of their ratios. One core has the JVM, the driver and one worker; two "
    "have one worker more, and share the JVM and the driver.",
    "state: as `anabranch bench state-growth`. sites: as `anabranch bench driver`, made-up tasks.",
    f"queries: epochs of {QUERY_ROWS:,} rows and {KEYS:,} keys read by so many queries, no two alike; "
    "ms_per_query is what one more costs between 1 and 100, query_cost that against an epoch of one.",
    f"files: epochs of one file of {FILE_ROWS:,} rows after {SEEN[0]} and {SEEN[1]:,} small files have been "
    "read, the checkpoint gone on with; files_growth is the ratio of their medians.",
)


def run_scale(quick: bool, steps: Steps) -> Result:
    """All parts; with `quick`, a tenth of the data, each run once."""
    before = load()
    repeats = 1 if quick else REPEATS
    steps.expect(2 + 4 * repeats + 2 + len(COUNTS) + len(SEEN) + len(SITES))
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        cores, equal = _cores(Path(scratch), quick, repeats, steps)
        queries, right = _queries(Path(scratch) / "queries", quick, steps)
        files, all_read = _files(Path(scratch) / "files", quick, steps)
    grown = run_state_growth(quick, steps)
    sites = {}
    for count in SITES[:2] if quick else SITES:
        steps.begin(f"driver, {count} sites")
        sites[str(count)] = time_of_driver(count, 5 if quick else DRIVER_EPOCHS, quick)
    equal = equal and right and all_read and grown.sound
    figures: dict[str, Any] = {
        "quick": quick,
        "equal": equal,
        "speedup_2_cores": min(found["speedup"] for found in cores.values()),
        "cores_rows_per_s": cores,
        "growth": grown.figures["growth"],
        "state": {
            "delta_rows": grown.figures["delta_rows"],
            "stages": grown.figures["stages"],
            "fastest_growth": grown.figures["fastest_growth"],
        },
        **queries,
        **files,
        "driver": sites,
    }
    bars = (
        Bar("speedup_2_cores", figures["speedup_2_cores"], ">=", 1.7),
        Bar("growth", figures["growth"], "<=", 1.3),
        Bar("files_growth", figures["files_growth"], "<=", 1.1),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("scale", figures, bars, NOTES, equal, circumstances)


def _cores(scratch: Path, quick: bool, repeats: int, steps: Steps) -> tuple[dict[str, Any], bool]:
    """W1 and W2 on one core and on two, in turn."""
    scale = 10 if quick else 1
    steps.begin("Writing the files of W1")
    list(w1(1_000_000 // scale, FILES).write(scratch / "w1"))
    steps.begin("Writing the files of W2")
    Events(W2.streams, JOIN_ROWS // scale, FILES, W2.keys).write(scratch / "w2")
    oracle = BenchOracle(str(scratch / "w1"), WINDOW)
    joined = digest_of_join(str(scratch / "w2"), W2.streams, W2.bound)
    found, equal = dict[str, Any](), True
    for name, streams in (("w1", ()), ("w2", W2.streams)):
        runs: dict[int, list[JobOutcome]] = {1: [], 2: []}
        for number in range(repeats):
            for cores, done in runs.items():
                steps.begin(f"{name}, {cores} cores, run {number + 1}")
                job = Ours(
                    data=str(scratch / name), scratch=str(scratch / f"{name}-{cores}-{number}"),
                    streams=streams, window=WINDOW, cores=cores,
                )  # fmt: skip
                done.append(run_job(job))
                results = done[-1].results
                equal &= (
                    digest_of_results(results, streams) == joined
                    if streams
                    else oracle.check(results).equal
                )
        one, two = rates(runs[1]), rates(runs[2])
        found[name] = {
            "1": describe_spread(one),
            "2": describe_spread(two),
            "speedup": round(two.median / one.median, 3),
        }
    return found, equal


def _queries(scratch: Path, quick: bool, steps: Steps) -> tuple[dict[str, Any], bool]:
    """1, 10 and 100 queries on one stream."""
    scratch.mkdir()
    sums = write_numbers(scratch, QUERY_ROWS // (10 if quick else 1), KEYS, max(COUNTS))
    told, equal = dict[str, Any](), True
    for count in COUNTS:
        steps.begin(f"{count} queries")
        outcome, right = run_shared(count, scratch, sums)
        told[str(count)] = {key: round(value, 1) for key, value in outcome.items()}
        equal = equal and right
    least, most = (told[str(count)]["epoch_ms"] for count in (COUNTS[0], COUNTS[-1]))
    each = (most - least) / (COUNTS[-1] - COUNTS[0])
    costs = {"ms_per_query": round(each, 2), "query_cost": round(each / least, 4)}
    return {"queries": told, **costs}, equal


def _files(scratch: Path, quick: bool, steps: Steps) -> tuple[dict[str, Any], bool]:
    """Epochs after few files were read, and after many."""
    medians, equal = dict[str, float](), True
    session = Session.local(cores=2)
    try:
        for seen in SEEN:
            count = seen // 10 if quick else seen
            steps.begin(f"after {count:,} files")
            rows = FILE_ROWS // 10 if quick else FILE_ROWS
            medians[str(count)], right = time_files(session, scratch / str(count), count, rows)
            equal = equal and right
    finally:
        session.stop()
    few, many = medians.values()
    return {"files_seen_ms": medians, "files_growth": round(many / few, 3)}, equal


def scale_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    for name, found in figures["cores_rows_per_s"].items():
        yield (
            f"{name}: {found['1']['median']:,.0f} rows/s on one core, {found['2']['median']:,.0f} on two: "
            f"{found['speedup']:.2f} times"
        )
    for stage in figures["state"]["stages"]:
        yield f"{stage['state_rows']:>12,} rows of state: {stage['median_ms']:,.0f} ms an epoch"
    for count, told in figures["queries"].items():
        yield f"{count:>3} queries: {told['epoch_ms']:,.0f} ms an epoch, {told['rows_per_s']:,.0f} rows/s"
    yield f"one more query: {figures['ms_per_query']:g} ms, {figures['query_cost']:.1%} of an epoch of one"
    for seen, milliseconds in figures["files_seen_ms"].items():
        yield f"after {int(seen):,} files: {milliseconds:,.0f} ms an epoch"
    for sites, told in figures["driver"].items():
        yield f"{sites:>3} sites: {1000 * told['seconds']:,.0f} ms of the driver an epoch"
