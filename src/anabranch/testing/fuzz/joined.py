"""Random joins: all kinds, of two and three inputs, with bounds of time and further conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.testing.fuzz.draw import Both, DrawnColumn
from anabranch.testing.fuzz.plain import first_told
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time, select
from anabranch.testing.fuzz.truths import condition
from anabranch.testing.fuzz.writer import ExpressionWriter

KINDS = (
    "JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "LEFT SEMI JOIN",
    "ANTI JOIN", "LEFT OUTER JOIN",
)  # fmt: skip


@dataclass
class _Inputs:
    """The inputs joined so far: those with columns in the result, and those never NULL."""

    seen: dict[str, Relation] = field(default_factory=dict)
    certain: list[str] = field(default_factory=list)

    def columns(self) -> list[Both]:
        return [column for alias, one in self.seen.items() for column in one.seen_as(alias)]


def joined(maker: CaseMaker, sources: list[Relation]) -> Relation:
    """A join of two or three relations that have a time."""
    draw = maker.draw
    aliases = [maker.name("j") for _ in sources]
    inputs = _Inputs({aliases[0]: sources[0]}, [aliases[0]])
    first = sources[0].read_as(aliases[0])
    ours, duck = first.ours, first.duck
    loose: list[Both] = []
    plain = True
    for alias, source in zip(aliases[1:], sources[1:], strict=True):
        kind = draw.pick(KINDS)
        if alias != aliases[-1] and kind == "FULL JOIN":
            kind = "JOIN"  # nothing would be left to tell a time
        conditions = _on(maker, inputs, alias, source, kind, len(sources) > 2)
        read = source.read_as(alias)
        inner = "JOIN" in kind.split()[0] or kind.startswith("INNER")
        plain = plain and inner
        if inner and plain and draw.chance(0.25):
            ours, duck = f"{ours}, {read.ours}", f"{duck}, {read.duck}"
            loose += conditions
        else:
            plain = False
            duck_kind = kind.replace("LEFT SEMI", "SEMI")
            ours += f" {kind} {read.ours} ON {_all(conditions).ours}"
            duck += f" {duck_kind} {read.duck} ON {_all(conditions).duck}"
        if not kind.endswith(("SEMI JOIN", "ANTI JOIN")):
            inputs.seen[alias] = source
        if kind.startswith("FULL"):
            inputs.certain = []
        elif kind.startswith("RIGHT"):
            inputs.certain = [alias]
        elif inner:
            inputs.certain.append(alias)
    writer = ExpressionWriter(draw, inputs.columns())
    if draw.chance(0.3):
        loose.append(condition(writer, 2))
    items, columns, time = _items(maker, writer, inputs)
    tail = _all(loose) if loose else None
    views = tuple(dict.fromkeys(view for source in sources for view in source.views))
    both = select(items, Both(ours, duck, ""), tail)
    return Relation(both.ours, both.duck, tuple(columns), time, views=views)


def _items(
    maker: CaseMaker, writer: ExpressionWriter, inputs: _Inputs
) -> tuple[list[Both], list[DrawnColumn], Time | None]:
    draw = maker.draw
    values = [writer.any(draw.randint(0, 2)) for _ in range(draw.randint(1, 4))]
    names = [maker.name("o") for _ in values]
    items = [value.as_(name) for name, value in zip(names, values, strict=True)]
    columns = [DrawnColumn(n, v.kind, v.tame, v.exact) for n, v in zip(names, values, strict=True)]
    if not inputs.certain or draw.chance(0.1):
        return items, columns, None
    alias = inputs.certain[0]
    time = inputs.seen[alias].time
    assert time is not None
    column = next(one for one in inputs.seen[alias].columns if one.name == time.column)
    name = maker.name("t")
    items.append(column.of(alias).as_(name))
    columns.append(DrawnColumn(name, column.kind))
    return items, columns, Time(first_told(items, column.of(alias), name), time.stamps, time.unit)


def _on(
    maker: CaseMaker, inputs: _Inputs, alias: str, source: Relation, kind: str, strict: bool
) -> list[Both]:
    """The conditions of one join: equalities, a bound of time, something else at times."""
    draw = maker.draw
    other = draw.pick(inputs.certain)
    conditions = [_bound(maker, (other, inputs.seen[other]), (alias, source))]
    least = 1 if strict or kind not in ("JOIN", "INNER JOIN") else draw.pick((0, 1, 1, 1))
    writers = (
        ExpressionWriter(draw, inputs.columns()),
        ExpressionWriter(draw, source.seen_as(alias)),
    )
    for _ in range(max(least, draw.pick((1, 1, 1, 2))) if least else 0):
        pair = _equality(*writers)
        conditions.append(pair if pair else _keyed(other, alias, inputs.seen[other], source))
    if draw.chance(0.35):
        conditions.append(
            condition(ExpressionWriter(draw, [*inputs.columns(), *source.seen_as(alias)]), 2)
        )
    draw.shuffle(conditions)
    return conditions


def _equality(left: ExpressionWriter, right: ExpressionWriter) -> Both | None:
    """Equal values of two inputs, told by columns or something computed from one."""
    draw = left.draw
    common = [name for name in left.families() if name in right.families() and name != "float"]
    if not common:
        return None
    family = draw.pick(common)
    here, there = left.known(family), right.known(family)
    one, other = draw.pick(here), draw.pick(there)
    if family == "int" and draw.chance(0.3):
        by = draw.randint(2, 4)
        one = Both(f"{one.ours} % {by}", f"floor_mod({one.duck}, {by})", "i64")
        if draw.chance(0.5):
            other = Both(f"{other.ours} % {by}", f"floor_mod({other.duck}, {by})", "i64")
    if family == "text" and draw.chance(0.2):
        one = Both(f"UPPER({one.ours})", f"upper({one.duck})", "text")
    return Both(f"{one.ours} = {other.ours}", f"{one.duck} = {other.duck}", "truth")


def _keyed(left: str, right: str, here: Relation, there: Relation) -> Both:
    """Any two columns of one family equal; times where there is nothing else."""
    assert here.time
    assert there.time
    one, other = here.time.column, there.time.column
    return Both(f"{left}.{one} = {right}.{other}", f'{left}."{one}" = {right}."{other}"', "truth")


def _bound(maker: CaseMaker, left: tuple[str, Relation], right: tuple[str, Relation]) -> Both:
    """How far apart in time rows may be that meet."""
    draw = maker.draw
    here, there = left[1].time, right[1].time
    assert here
    assert there
    one = Both(f"{left[0]}.{here.column}", f'{left[0]}."{here.column}"', "")
    other = Both(f"{right[0]}.{there.column}", f'{right[0]}."{there.column}"', "")
    if here.unit != there.unit:
        (fine, wide) = (one, other) if here.unit < there.unit else (other, one)
        size, later = max(here.unit, there.unit) // min(here.unit, there.unit), draw.randint(-1, 1)
        return Both(
            f"{fine.ours} / {size} = {wide.ours} + ({later})",
            f"floor_div({fine.duck}, {size}) = {wide.duck} + ({later})",
            "truth",
        )
    if draw.chance(0.4):
        one, other = other, one
    before, after = draw.randint(0, 8), draw.randint(0, 8)
    if here.stamps:
        low, high = (f"INTERVAL '{number} seconds'" for number in (before, after))
    else:
        low, high = str(before), str(after)
    form = draw.randrange(6)
    if here.stamps and form in (4, 5):
        form = 0

    def both(text: str) -> Both:
        ours, duck = (
            text.replace("{one}", first).replace("{other}", second)
            for first, second in ((one.ours, other.ours), (one.duck, other.duck))
        )
        return Both(ours, duck, "truth")

    match form:
        case 0 | 1:
            return both(f"{{one}} BETWEEN {{other}} - {low} AND {{other}} + {high}")
        case 2:
            return both(f"{{one}} >= {{other}} - {low} AND {{one}} < {{other}} + {high}")
        case 3:
            return both(f"{{one}} = {{other}} + {high}")
        case 4:
            return both(f"ABS({{one}} - {{other}}) <= {high}")
    size = draw.randint(1, 12)
    return Both(
        f"{one.ours} / {size} = {other.ours} / {size}",
        f"floor_div({one.duck}, {size}) = floor_div({other.duck}, {size})",
        "truth",
    )


def _all(conditions: list[Both]) -> Both:
    return Both(
        " AND ".join(one.ours for one in conditions),
        " AND ".join(one.duck for one in conditions),
        "truth",
    )


def within_rows(maker: CaseMaker, left: Relation, right: Relation) -> Relation:
    """A join of each row with the last rows of the other stream, in the order of both."""
    draw = maker.draw
    one, other = maker.name("j"), maker.name("j")
    rows = draw.randint(1, 6)
    writer = ExpressionWriter(draw, [*left.seen_as(one), *right.seen_as(other)])
    rest = condition(writer, 1) if draw.chance(0.5) else Both("", "TRUE", "truth")
    assert left.time
    assert right.time
    here, there = left.time.column, right.time.column
    items, columns, _ = _items(maker, writer, _Inputs({one: left, other: right}, []))
    reads = left.read_as(one), right.read_as(other)

    def ranked(source: Relation, time: str, opposite: Relation, theirs: str, sign: str) -> str:
        """Rows with their number, and how many of the other input come before them."""
        back = opposite.read_as("o").duck
        return (
            f'SELECT s.*, row_number() OVER (ORDER BY s."{time}", s.__n) AS __r, '
            f'(SELECT count(*) FROM {back} WHERE o."{theirs}" {sign} s."{time}") AS __c '
            f"FROM {source.read_as('s').duck}"
        )

    first = ranked(left, here, right, there, "<")
    second = ranked(right, there, left, here, "<=")
    met = (
        f'CASE WHEN {one}."{here}" <= {other}."{there}" THEN {other}.__c - {one}.__r < {rows} '
        f"ELSE {one}.__c - {other}.__r < {rows} END"
    )
    also = f" AND {rest.ours}" if rest.ours else ""
    return Relation(
        f"SELECT {', '.join(i.ours for i in items)} FROM {reads[0].ours} JOIN {reads[1].ours} "
        f"ON WITHIN_ROWS({rows}){also}",
        f"SELECT {', '.join(i.duck for i in items)} FROM ({first}) AS {one} JOIN ({second}) AS {other} "
        f"ON {met} AND {rest.duck}",
        tuple(columns), None, views=(*left.views, *right.views),
    )  # fmt: skip
