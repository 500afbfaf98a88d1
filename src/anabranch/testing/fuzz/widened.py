"""Random sources that are wider than their stream: rows in windows, elements of lists, rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.testing.fuzz.draw import Both, Draw, DrawnColumn
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time, select
from anabranch.testing.fuzz.truths import condition
from anabranch.testing.fuzz.window import SECOND
from anabranch.testing.fuzz.world import TABLE, TABLE_COLUMNS
from anabranch.testing.fuzz.writer import ExpressionWriter


@dataclass(frozen=True)
class _Borders:
    """Windows of FROM: our call, and how DuckDB finds the borders of a row's windows from `__t`."""

    ours: str
    duck: str


def in_windows(maker: CaseMaker, source: Relation) -> Relation:
    """Every row of a stream once for each of its windows: TUMBLE, HOP, CUMULATE in FROM."""
    draw, time = maker.draw, source.time
    assert time is not None
    alias = maker.name("f")
    borders = _borders(draw, source, time)
    at = f'micros("{time.column}")' if time.stamps else f'CAST("{time.column}" AS BIGINT)'
    duck = borders.duck.replace("{rows}", f'(SELECT *, {at} AS __t FROM "{source.duck}")')
    kind = "stamp" if time.stamps else "i64"
    kept, shown = _kept(draw, source, alias)
    for border, own in (("window_start", "__s"), ("window_end", "__e")):
        name = maker.name(border[7])
        told = f"make_timestamp({alias}.{own})" if time.stamps else f"{alias}.{own}"
        shown.append(Both(f"{alias}.{border}", told, kind).as_(name))
        kept.append(DrawnColumn(name, kind, tame=False))
    where = None
    if draw.chance(0.4):
        where = condition(ExpressionWriter(draw, source.seen_as(alias)), 2)
    both = select(shown, Both(f"{borders.ours} AS {alias}", f"({duck}) AS {alias}", ""), where)
    return Relation(both.ours, both.duck, tuple(kept), time, views=source.views)


def _borders(draw: Draw, source: Relation, time: Time) -> _Borders:
    scale = SECOND if time.stamps else 1
    step = draw.pick((1, 2, 5, 10, 30))
    many = draw.randint(1, 4)
    spelled = draw.randrange(3)

    def shown(number: int) -> str:
        if not time.stamps:
            return str(number)
        return f"INTERVAL '{number}' SECOND" if spelled else f"'{number} seconds'"

    table, at = source.ours, time.column
    if spelled == 2:
        table, at = f"TABLE {table}", f"DESCRIPTOR({at})"
    slide, size = step * scale, step * many * scale
    match draw.pick(("TUMBLE", "HOP", "CUMULATE")):
        case "TUMBLE":
            call = f"TUMBLE({table}, {at}, {shown(step)})"
            begin = f"floor_div(__t, {slide}) * {slide}"
            duck = f"SELECT *, {begin} AS __s, {begin} + {slide} AS __e FROM {{rows}}"
        case "HOP":
            call = f"HOP({table}, {at}, {shown(step)}, {shown(step * many)})"
            first, last = f"floor_div(__t - {size}, {slide}) + 1", f"floor_div(__t, {slide}) + 1"
            duck = (
                f"SELECT *, __w * {slide} AS __s, __w * {slide} + {size} AS __e FROM "
                f"(SELECT *, unnest(range({first}, {last})) AS __w FROM {{rows}})"
            )
        case _:
            call = f"CUMULATE({table}, {at}, {shown(step)}, {shown(step * many)})"
            begin = f"floor_div(__t, {size}) * {size}"
            ends = f"range({begin} + {slide}, {begin} + {size} + 1, {slide})"
            duck = (
                f"SELECT * FROM (SELECT *, {begin} AS __s, unnest({ends}) AS __e FROM {{rows}}) "
                "WHERE __e > __t"
            )
    return _Borders(f"TABLE({call})" if spelled == 2 else call, duck)


def elements(maker: CaseMaker, source: Relation) -> Relation:
    """Every row once for each element of a list, with its number or without, and what is in the list."""
    draw, time = maker.draw, source.time
    assert time is not None
    alias, unfolded = maker.name("l"), maker.name("u")
    writer = ExpressionWriter(draw, source.seen_as(alias))
    family = draw.pick(("int", "text"))
    kind, name = ("i64", "BIGINT") if family == "int" else ("text", "VARCHAR")
    values = [writer.leaf(family) for _ in range(draw.randint(1, 4))]
    ours = ", ".join(f"CAST({value.ours} AS {name})" for value in values)
    duck = ", ".join(f"CAST({value.duck} AS {name})" for value in values)
    listed = Both(draw.pick((f"[{ours}]", f"ARRAY[{ours}]")), f"[{duck}]", "")
    element, place, many = (maker.name("e") for _ in range(3))
    numbered = draw.chance(0.4)
    call = f"CROSS JOIN UNNEST({listed.ours})" + " WITH ORDINALITY" * numbered
    call += f" AS {unfolded}(x{', n' * numbered})"
    kept, shown = _kept(draw, source, alias)
    shown.append(Both(f"{unfolded}.x", f"{alias}.__x", kind).as_(element))
    kept.append(DrawnColumn(element, kind, tame=False))
    if numbered:
        shown.append(Both(f"{unfolded}.n", f"{alias}.__i", "i64").as_(place))
        kept.append(DrawnColumn(place, "i64"))
    if draw.chance(0.5):
        least = draw.pick(("LEN", "LIST_MIN", "LIST_MAX")) if family == "int" else "LEN"
        shown.append(
            Both(f"{least}({listed.ours})", f"CAST({least}({alias}.__l) AS BIGINT)", "").as_(many)
        )
        kept.append(DrawnColumn(many, "i64", tame=least == "LEN"))
    read = source.read_as(alias)
    rows = (
        f"SELECT *, unnest(__l) AS __x, generate_subscripts(__l, 1) AS __i FROM "
        f"(SELECT *, {listed.duck} AS __l FROM {read.duck})"
    )
    seen = [*writer.columns, Both(f"{unfolded}.x", f"{alias}.__x", kind, tame=False)]
    where = condition(ExpressionWriter(draw, seen), 2) if draw.chance(0.4) else None
    both = select(shown, Both(f"{read.ours} {call}", f"({rows}) AS {alias}", ""), where)
    return Relation(both.ours, both.duck, tuple(kept), time, views=source.views)


def looked_up(maker: CaseMaker, source: Relation) -> Relation:
    """Rows beside those of the table that have their key."""
    draw, time = maker.draw, source.time
    assert time is not None
    alias, known = maker.name("s"), maker.name("r")
    writer = ExpressionWriter(draw, source.seen_as(alias))
    kind = draw.pick(("JOIN", "INNER JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "ANTI JOIN"))
    family, column = draw.pick((("int", "key"), ("int", "key"), ("text", "word")))
    own = draw.pick(writer.known(family) or [source.columns[1].of(alias)])
    column = column if own.kind == "text" else "key"
    conditions = [Both(f"{own.ours} = {known}.{column}", f"{own.duck} = {known}.{column}", "")]
    theirs = [one.of(known) for one in TABLE_COLUMNS]
    if draw.chance(0.4):
        also = condition(ExpressionWriter(draw, theirs), 1)
        # Of the table, as an outer join wants them: what has constants alone is neither side's
        conditions += [also] if f"{known}." in also.ours else []
    if "SEMI" not in kind and "ANTI" not in kind:
        beside = draw.some(TABLE_COLUMNS, 3)
        if kind in ("JOIN", "INNER JOIN") and draw.chance(0.3):
            conditions.append(condition(ExpressionWriter(draw, [*writer.columns, *theirs]), 1))
    else:
        beside = []
    kept, shown = _kept(draw, source, alias)
    for one in beside:
        name = maker.name("r")
        shown.append(one.of(known).as_(name))
        kept.append(DrawnColumn(name, one.kind, one.tame))
    read = source.read_as(alias)
    ours, duck = (
        f"{text} {how} {TABLE} AS {known} ON {' AND '.join(parts)}"
        for text, how, parts in (
            (read.ours, kind, [part.ours for part in conditions]),
            (read.duck, kind.replace("LEFT SEMI", "SEMI"), [part.duck for part in conditions]),
        )
    )
    both = select(shown, Both(ours, duck, ""), None)
    return Relation(both.ours, both.duck, tuple(kept), time, views=source.views)


def as_of(maker: CaseMaker, source: Relation, versions: Relation) -> Relation:
    """Rows beside the newest row of another stream with their key that is not after them."""
    draw, time, theirs = maker.draw, source.time, versions.time
    assert time is not None
    assert theirs is not None
    alias, version = maker.name("s"), maker.name("r")
    here, there = f'{alias}."{time.column}"', f'{version}."{theirs.column}"'
    kind = draw.pick(("JOIN", "LEFT JOIN"))
    kept, shown = _kept(draw, source, alias)
    for one in draw.some(versions.columns, 3):
        name = maker.name("r")
        shown.append(one.of(version).as_(name))
        kept.append(DrawnColumn(name, one.kind, one.tame, one.exact))
    ours = (
        f"{source.ours} AS {alias} {kind} {versions.ours} FOR SYSTEM_TIME AS OF "
        f"{alias}.{time.column} AS {version} ON {alias}.k = {version}.k"
    )
    duck = (
        f'"{source.duck}" AS {alias} {kind} "{versions.duck}" AS {version} '
        f"ON {alias}.k = {version}.k AND {there} <= {here}"
    )
    both = select(shown, Both(ours, duck, ""), None)
    newest = (
        f" QUALIFY row_number() OVER (PARTITION BY {alias}.__n ORDER BY {there} DESC, "
        f"{version}.__n DESC) = 1"
    )
    return Relation(both.ours, both.duck + newest, tuple(kept), time, views=source.views)


def _kept(draw: Draw, source: Relation, alias: str) -> tuple[list[DrawnColumn], list[Both]]:
    """The time of a source and some of its columns, under their own names."""
    assert source.time is not None
    some = draw.some(source.columns, 4)
    kept = [one for one in source.columns if one in some or one.name == source.time.column]
    return kept, [one.of(alias).as_(one.name) for one in kept]


def widened(maker: CaseMaker, streams: Sequence[Relation]) -> Relation:
    """One of these over a stream."""
    draw = maker.draw
    source = draw.pick(streams)
    match draw.randrange(7):
        case 0 | 1:
            return in_windows(maker, source)
        case 2 | 3:
            return elements(maker, source)
        case 4 | 5:
            return looked_up(maker, source)
    return as_of(maker, source, draw.pick(streams))
