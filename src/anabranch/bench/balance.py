"""Slow sites and skewed keys on eight sites: partitions as they are, moved by themselves, and placed by hand.

Two cores cannot show what eight machines would, so each row takes an emulated time at its site, in which
the site only waits. A slowed site takes 1/0.43 times as long for everything, as under Flux's external load.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.balance_runs import (
    COLD,
    EPOCHS_PER_DRIFT,
    HOT,
    KEYS,
    MODES,
    SECONDS_PER_ROW,
    SITES,
    SLOW_FROM,
    SLOWDOWN,
    BalanceCourse,
    Scenario,
    most_by_moving,
    run_one,
    write,
)
from anabranch.bench.measure import load, machine, percentile, spread
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

ROWS, QUICK_ROWS = 160_000, 40_000
"""Rows of a file, which is an epoch."""
EPOCHS, QUICK_EPOCHS = 24, 12
WARM = 3
"""Epochs that never count: workers start, and code is compiled."""
IDLE_EPOCHS, IDLE_REPEATS = 13, 5
MOVE_ROWS, MOVE_EPOCHS, QUICK_MOVE_EPOCHS = 40_000, 204, 12
"""Rows and number of the epochs that show what moves cost."""
SCENARIOS = {
    "one_slow": Scenario(slow=1),
    "two_slow": Scenario(slow=2),
    "four_slow": Scenario(slow=4),
    "skew_80_20": Scenario("80/20"),
    "drift": Scenario("drift"),
}
NOTES = (
    f"{SITES} sites on local[{SITES}], {SECONDS_PER_ROW * 1e6:g} µs a row in which a site waits; sites are "
    f"slowed by {SLOWDOWN:.2f} from epoch {SLOW_FROM} on (epochs count from 0). static: policy none, no "
    "skew buffer; adaptive: all settings as they are by default; ideal: as static, the map set by hand "
    "from the true loads of all partitions and the true speed of all sites, for drift anew whenever the "
    "keys change.",
    "Rates are rows over the whole time of epochs, Spark's fixed cost with it, in the second half of the "
    f"epochs; for drift in all but the first {SLOW_FROM}, as there is no steady state but following. "
    "by_medians has the same ratios from the median epoch, which other work on the machine hurts less.",
    "most_by_moving is the arithmetic bound for adaptive over static: the service time of the busiest site "
    "against an even share by speed, without the fixed cost of an epoch.",
    f"80/20: {HOT} keys share 80% of the rows, {COLD} the rest. drift: 2,000 keys by Zipf 0.9, ranks dealt "
    f"into four parts; every {EPOCHS_PER_DRIFT} epochs the next part moves on to other keys. No key has more "
    "than 67% of a site's share, so a good placement exists (ideal_rest says how good). Sub-aggregation is "
    "off: it would hide popular keys before they reach a site.",
    "move_p99_ratio: in a run of its own, uniform keys, no site slow, a partition of each site moves on to "
    "the next before every second epoch, so that the load stays even and nothing but the moves differs: the "
    f"p99 of the epochs with moves against that of those without. {KEYS['much state']:,} groups are in the "
    "state, an eighth of which moves each time.",
)


def run_balance(quick: bool, steps: Steps) -> Result:
    """All scenarios three ways, and adaptive beside static where nothing is wrong."""
    from anabranch.engine.local import local_spark

    rows, epochs, repeats = (QUICK_ROWS, QUICK_EPOCHS, 1) if quick else (ROWS, EPOCHS, IDLE_REPEATS)
    steps.expect(2 + len(SCENARIOS) * len(MODES) + 2 * repeats)
    before = load()
    courses: dict[str, dict[str, BalanceCourse]] = {}
    idle: dict[str, list[BalanceCourse]] = {"static": [], "adaptive": []}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        many = QUICK_MOVE_EPOCHS if quick else MOVE_EPOCHS
        steps.begin(f"Writing {3 * rows * epochs + MOVE_ROWS * many:,} rows")
        kinds = ("uniform", "80/20", "drift")
        data = {
            kind: write(Path(scratch) / f"data-{number}", kind, rows, epochs)
            for number, kind in enumerate(kinds)
        }
        in_turn = write(Path(scratch) / "data-moves", "much state", MOVE_ROWS, many)
        spark = local_spark(f"local[{SITES}]")
        try:
            for name, scenario in SCENARIOS.items():
                for mode in MODES:
                    steps.begin(f"{name}, {mode}")
                    course = run_one(spark, scenario, mode, data[scenario.keys])
                    courses.setdefault(name, {})[mode] = course
            short = data["uniform"].first(min(epochs, IDLE_EPOCHS))
            for repeat in range(repeats):
                for mode, runs in idle.items():
                    steps.begin(f"nothing wrong, {mode}, run {repeat + 1}")
                    runs.append(run_one(spark, Scenario(), mode, short))
            steps.begin("partitions in turn")
            moves = run_one(spark, Scenario(), "in turn", in_turn)
        finally:
            spark.stop()
        bounds = {name: most_by_moving(s, data[s.keys]) for name, s in SCENARIOS.items()}
    equal = all(course.equal for some in courses.values() for course in some.values())
    equal &= all(course.equal for some in idle.values() for course in some) and moves.equal
    figures: dict[str, Any] = {
        "quick": quick, "equal": equal, "rows_per_epoch": rows, "epochs": epochs, "sites": SITES,
        "slow_from": SLOW_FROM,
    }  # fmt: skip
    for name, some in courses.items():
        figures[name] = _scenario(some, counted_from(name, epochs), bounds[name])
    figures |= _idle(idle) | _moves(moves)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("balance", figures, _bars(figures), NOTES, equal, circumstances)


def counted_from(name: str, epochs: int) -> int:
    """The first epoch that counts: the controller has settled, or has begun to follow."""
    return SLOW_FROM if name == "drift" else epochs // 2


def _scenario(courses: dict[str, BalanceCourse], first: int, bound: float) -> dict[str, Any]:
    rates = {mode: course.rate(first) for mode, course in courses.items()}
    middle = {mode: course.median_ms(first) for mode, course in courses.items()}
    return {
        "adaptive_over_static": round(rates["adaptive"] / rates["static"], 3),
        "adaptive_over_ideal": round(rates["adaptive"] / rates["ideal"], 3),
        "by_medians": {
            "adaptive_over_static": round(middle["static"] / middle["adaptive"], 3),
            "adaptive_over_ideal": round(middle["ideal"] / middle["adaptive"], 3),
        },
        "most_by_moving": round(bound, 3),
        "ideal_rest": round(courses["ideal"].ideal_rest, 3),
        "counted_from": first,
        **{
            mode: {
                "rows_per_s": round(rates[mode]),
                "median_ms": round(middle[mode]),
                "imbalance": round(median(course.imbalance[first:]), 3),
                "moved": sum(course.moved),
                "epoch_ms": course.ms,
                "epoch_moved": course.moved,
                "epoch_imbalance": course.imbalance,
            }
            for mode, course in courses.items()
        },
    }


def _idle(runs: dict[str, list[BalanceCourse]]) -> dict[str, Any]:
    """What adaptation costs when nothing is wrong, from the median epoch of all runs."""
    pooled = {
        mode: median(ms for run in some for ms in run.ms[WARM:]) for mode, some in runs.items()
    }
    pairs = [
        a.median_ms(WARM) / s.median_ms(WARM) - 1
        for s, a in zip(runs["static"], runs["adaptive"], strict=True)
    ]
    return {
        "idle_cost": round(pooled["adaptive"] / pooled["static"] - 1, 4),
        "idle": {
            "by_pairs": [round(cost, 4) for cost in pairs],
            "moved": [sum(run.moved) for run in runs["adaptive"]],
            **{
                mode: describe_spread(spread([round(run.median_ms(WARM)) for run in some]))
                for mode, some in runs.items()
            },
        },
    }


def _moves(course: BalanceCourse) -> dict[str, Any]:
    """How long epochs take in which moved partitions are taken up, against those between them."""
    counted = list(zip(course.ms, course.moved, strict=True))[WARM + 1 :]
    moving = [ms for ms, moved in counted if moved]
    steady = [ms for ms, moved in counted if not moved]
    most, usual = percentile(moving, 0.99), percentile(steady, 0.99)
    return {
        "move_p99_ratio": round(most / usual, 3),
        "moves": {
            "partitions": sum(course.moved),
            "moving": {
                "epochs": len(moving),
                "p50_ms": round(median(moving)),
                "p99_ms": round(most),
            },
            "steady": {
                "epochs": len(steady),
                "p50_ms": round(median(steady)),
                "p99_ms": round(usual),
            },
        },
    }


def _bars(figures: dict[str, Any]) -> tuple[Bar, ...]:
    first = figures["one_slow"]["adaptive_over_static"]
    ideal = [f"{name}.adaptive_over_ideal" for name in SCENARIOS]
    return (
        Bar("one_slow.adaptive_over_static", first, ">=", 1.6),
        *(Bar(key, figures[key.split(".")[0]]["adaptive_over_ideal"], ">=", 0.9) for key in ideal),
        Bar("idle_cost", figures["idle_cost"], "<=", 0.03),
        Bar("move_p99_ratio", figures["move_p99_ratio"], "<=", 1.3),
    )
