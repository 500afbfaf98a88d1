"""Random aggregates that keep values of their group: different values, quantiles, truths, lists."""

from __future__ import annotations

from anabranch.testing.fuzz.truths import condition
from anabranch.testing.fuzz.writer import ExpressionWriter

Form = tuple[str, str, str, str, bool]
"""Our text, DuckDB's with `{a}` and `{filter}`, the kind, DuckDB's argument, whether it is exact."""


def collected(writer: ExpressionWriter, ordered: bool) -> Form:
    """One of them; with `ordered`, rows have an arrival number that DuckDB can order by, and no FILTER."""
    draw = writer.draw
    whole = writer.leaf("int", tame=True)
    number = f"CAST({whole.duck} AS BIGINT)"
    match draw.randrange(8 if ordered else 6):
        case 0:
            duck = "CAST(sum(DISTINCT {a}){filter} AS BIGINT)"
            return f"SUM(DISTINCT {whole.ours})", duck, "i64", number, True
        case 1:
            name = draw.pick(("MEDIAN({})", "QUANTILE_CONT({}, 0.5)"))
            return name.format(whole.ours), "median({a}){filter}", "f64", number, False
        case 2:
            fraction = draw.pick(("0.0", "0.25", "0.5", "0.9", "1.0"))
            duck = f"quantile_disc({{a}}, {fraction}){{filter}}"
            return f"QUANTILE_DISC({whole.ours}, {fraction})", duck, "i64", number, True
        case 3:
            truth = condition(writer, 1)
            name = draw.pick(("BOOL_AND", "BOOL_OR"))
            return (
                f"{name}({truth.ours})",
                f"{name.lower()}({{a}}){{filter}}",
                "truth",
                truth.duck,
                True,
            )
        case 4:
            name = draw.pick(("VAR_POP", "STDDEV_POP"))
            duck = f"{name.lower()}({{a}}){{filter}}"
            return f"{name}({whole.ours})", duck, "f64", f"CAST({number} AS DOUBLE)", False
        case 5:
            truth = condition(writer, 1)
            duck = "count(CASE WHEN {a} THEN 1 END){filter}"
            return f"COUNT_IF({truth.ours})", duck, "i64", truth.duck, True
        case 6:
            text = writer.of("text", 1)
            duck = "string_agg({a}, '-' ORDER BY __t, __n)"
            return f"STRING_AGG({text.ours}, '-')", duck, "text", text.duck, True
    other = writer.leaf("int", tame=True)
    name = draw.pick(("MAX_BY", "MIN_BY"))
    way = "DESC" if name == "MAX_BY" else "ASC"
    both = f"{{'v': {number}, 'b': CAST({other.duck} AS BIGINT)}}"
    duck = (
        f"first({{a}}.v ORDER BY {{a}}.b {way}, {{a}}.v) "
        "FILTER (WHERE {a}.v IS NOT NULL AND {a}.b IS NOT NULL)"
    )
    return f"{name}({whole.ours}, {other.ours})", duck, "i64", both, True
