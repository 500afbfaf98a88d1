"""Random SELECTs without groups: projections, filters, unions, histories."""

from __future__ import annotations

from dataclasses import replace

from anabranch.testing.fuzz.draw import TYPES, Both, DrawnColumn
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time, select
from anabranch.testing.fuzz.truths import condition
from anabranch.testing.fuzz.writer import ExpressionWriter


def plain(maker: CaseMaker, source: Relation, keep_time: bool = False) -> Relation:
    """SELECT of expressions, or of all columns, with or without WHERE."""
    draw = maker.draw
    alias = maker.name("p")
    writer = ExpressionWriter(draw, source.seen_as(alias, draw.chance(0.4)))
    read = source.read_as(alias)
    where = condition(writer, 3) if draw.chance(0.6) else None
    if draw.chance(0.15):
        left_out = [
            c
            for c in draw.some(source.columns, 2)
            if not source.time or c.name != source.time.column
        ]
        star = (
            f"* EXCEPT ({', '.join(c.name for c in left_out)})"
            if left_out and draw.chance(0.5)
            else "*"
        )
        kept = [c for c in source.columns if star == "*" or c not in left_out] or list(
            source.columns
        )
        star = star if len(kept) < len(source.columns) else "*"
        items = [Both(star, ", ".join(f'{alias}."{column.name}"' for column in kept), "")]
        columns, time = kept, source.time
    else:
        items, columns, time = _items(maker, writer, source, alias, keep_time)
    both = select(items, read, where)
    if source.arrival:
        both = replace(both, duck=both.duck.replace("SELECT ", f"SELECT {alias}.__n, ", 1))
    return Relation(both.ours, both.duck, tuple(columns), time, source.arrival, source.views)


def _items(
    maker: CaseMaker, writer: ExpressionWriter, source: Relation, alias: str, keep_time: bool
) -> tuple[list[Both], list[DrawnColumn], Time | None]:
    """The SELECT list; the ordered attribute stays in most, under its own name or another."""
    draw = maker.draw
    values = [writer.any(draw.randint(0, 3)) for _ in range(draw.randint(1, 5))]
    names = [maker.name("o") for _ in values]
    columns = [
        DrawnColumn(name, value.kind, value.tame, value.exact)
        for name, value in zip(names, values, strict=True)
    ]
    items = [value.as_(name) for name, value in zip(names, values, strict=True)]
    time = source.time
    if time is None or not (keep_time or draw.chance(0.85)):
        return items, columns, None
    column = next(one for one in source.columns if one.name == time.column)
    name = draw.pick((time.column, maker.name("t")))
    place = draw.randint(0, len(items))
    items.insert(place, column.of(alias).as_(name))
    columns.insert(place, DrawnColumn(name, column.kind, column.tame))
    return items, columns, Time(first_told(items, column.of(alias), name), time.stamps, time.unit)


def first_told(items: list[Both], time: Both, name: str) -> str:
    """Which column is the time, where several are: the first one."""
    texts = [item.duck for item in items]
    told = [
        text.removeprefix(f"{time.duck} AS ")
        for text in texts
        if text.startswith(f"{time.duck} AS ")
    ]
    return told[0].strip('"') if told else name


def union(maker: CaseMaker, sources: list[Relation]) -> Relation:
    """UNION ALL of SELECTs with the same columns."""
    draw = maker.draw
    families = draw.some(("int", "text", "float", "truth"), 3)
    kinds = {"int": "i64", "text": "text", "float": "f64", "truth": "truth"}
    parts: list[Both] = []
    first = sources[0].time
    assert first is not None
    for source in sources:
        alias = maker.name("u")
        writer = ExpressionWriter(draw, source.seen_as(alias))
        assert source.time is not None
        at = Both(f"{alias}.{source.time.column}", f'{alias}."{source.time.column}"', "")
        if not first.stamps:
            at = Both(f"CAST({at.ours} AS BIGINT)", f"CAST({at.duck} AS BIGINT)", "")
        at = at.as_("t")
        items = [at]
        for number, family in enumerate(families):
            value = writer.of(family, 2)
            while not value.exact:
                value = writer.leaf(family)
            kind = TYPES[kinds[family]]
            items.append(
                Both(f"CAST({value.ours} AS {kind})", f"CAST({value.duck} AS {kind})", "").as_(
                    f"c{number}"
                )
            )
        where = condition(writer, 2) if draw.chance(0.4) else None
        read = source.read_as(alias)
        parts.append(select(items, read, where))
    columns = [DrawnColumn("t", "stamp" if first.stamps else "i64")]
    columns += [DrawnColumn(f"c{n}", kinds[one], tame=False) for n, one in enumerate(families)]
    views = tuple(dict.fromkeys(view for source in sources for view in source.views))
    return Relation(
        " UNION ALL ".join(part.ours for part in parts), " UNION ALL ".join(part.duck for part in parts),
        tuple(columns), Time("t", first.stamps, first.unit), views=views,
    )  # fmt: skip


def history(maker: CaseMaker, source: Relation) -> Relation:
    """Aggregates over the last rows of a group, at every row: OVER (… ROWS n PRECEDING)."""
    draw, time = maker.draw, source.time
    assert time is not None
    assert source.arrival
    alias = maker.name("h")
    writer = ExpressionWriter(draw, source.seen_as(alias))
    drawn = [writer.leaf(draw.pick(writer.families())) for _ in range(draw.randint(0, 2))]
    keys = [source.untimed(key) for key in drawn]
    rows = draw.randint(0, 6)
    at = f"{alias}.{time.column}"
    ours_by = f"PARTITION BY {', '.join(key.ours for key in keys)} " if keys else ""
    duck_by = f"PARTITION BY {', '.join(key.duck for key in keys)} " if keys else ""
    asked = []
    for _ in range(draw.randint(1, 3)):
        name, family = draw.pick(
            (
                ("COUNT", "int"),
                ("SUM", "int"),
                ("MIN", "text"),
                ("MAX", "int"),
                ("FIRST", "text"),
                ("LAST", "int"),
            )
        )
        asked.append((name, family, writer.leaf(family, tame=True)))
    ties = source.ties(alias, keys, [value for _, _, value in asked])
    ours_over = f"OVER ({ours_by}ORDER BY {at} ROWS {rows} PRECEDING)"
    duck_over = f'OVER ({duck_by}ORDER BY {alias}."{time.column}", {ties} ROWS {rows} PRECEDING)'
    items = [Both(at, f'{alias}."{time.column}"', "").as_("t")]
    columns = [DrawnColumn("t", "stamp" if time.stamps else "i64")]
    for number, (name, family, value) in enumerate(asked):
        kind = "i64" if family == "int" else "text" if name != "COUNT" else "i64"
        duck = {"FIRST": "first_value", "LAST": "last_value"}.get(name, name.lower())
        items.append(
            Both(
                f"{name}({value.ours}) {ours_over}",
                f"CAST({duck}({value.duck}) {duck_over} AS {TYPES[kind]})",
                "",
            ).as_(f"h{number}")
        )
        columns.append(DrawnColumn(f"h{number}", kind, tame=False))
    where = condition(writer, 1) if draw.chance(0.3) else None
    read = source.read_as(alias)
    both = select(items, read, where)
    told = Time("t", time.stamps, time.unit)
    return Relation(both.ours, both.duck, tuple(columns), told, views=source.views)
