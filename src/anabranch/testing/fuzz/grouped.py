"""Random GROUP BY: windows, keys, aggregates with FILTER and DISTINCT, HAVING."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.testing.fuzz.collected import collected
from anabranch.testing.fuzz.draw import Both, Draw, DrawnColumn
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time
from anabranch.testing.fuzz.truths import condition
from anabranch.testing.fuzz.window import as_time, draw_window, numbered
from anabranch.testing.fuzz.writer import ExpressionWriter


@dataclass(frozen=True)
class AggregateForm:
    """An aggregate in both dialects; DuckDB's reads `argument` and `filter` under names of their own."""

    ours: str
    duck: str
    kind: str
    argument: str = "NULL"
    filter: str = "TRUE"
    exact: bool = True

    def placed(self, number: int) -> str:
        """DuckDB's text with the names that this aggregate's argument and filter have."""
        return self.duck.replace("{a}", f"__a{number}").replace("{f}", f"__f{number}")


def grouped(maker: CaseMaker, source: Relation) -> Relation:
    """Groups of a relation that has a time."""
    draw, time = maker.draw, source.time
    assert time is not None
    alias = maker.name("g")
    writer = ExpressionWriter(draw, source.seen_as(alias, draw.chance(0.5)))
    window = draw_window(draw, time, alias, source.arrival, maker.name("w"))
    keyed = ExpressionWriter(
        draw, [c for c in writer.columns if not c.duck.endswith(f'."{time.column}"')]
    )
    count = draw.pick((0, 1, 1, 1, 2)) if keyed.columns else 0
    keys = [_key(keyed) for _ in range(count if any(c.exact for c in keyed.columns) else 0)]
    keys = list({key.ours: key for key in keys}.values())
    names = [maker.name("g") for _ in keys]
    aggregates = [_aggregate(writer, source.arrival) for _ in range(draw.randint(1, 4))]
    aliases = [maker.name("a") for _ in aggregates]
    where = condition(writer, 2) if draw.chance(0.35) else None

    at = f'{alias}."{time.column}"'
    inner = [f"{key.duck} AS __g{number}" for number, key in enumerate(keys)]
    inner.append(f"{f'micros({at})' if time.stamps else at} AS __t")
    for number, one in enumerate(aggregates):
        inner += [f"{one.argument} AS __a{number}", f"{one.filter} AS __f{number}"]
    if source.arrival:
        inner.append(f"{alias}.__n AS __n")
    read = source.read_as(alias)
    rows = f"SELECT {', '.join(inner)} FROM {read.duck}" + (f" WHERE {where.duck}" if where else "")
    groups = [f"__g{number}" for number in range(len(keys))]
    rows = numbered(window, rows, groups)

    # A key has its name in GROUP BY, or is written out in both places
    out = draw.chance(0.4)
    columns = [DrawnColumn(name, key.kind, key.tame) for name, key in zip(names, keys, strict=True)]
    written = [
        (f"{key.ours} AS {name}" if out else name, f'__g{number} AS "{name}"')
        for number, (key, name) in enumerate(zip(keys, names, strict=True))
    ]
    stamps, at_name = time.stamps, window.time
    kind = "stamp" if stamps else "i64"
    if window.index:
        written.append(
            (
                window.ours if out else window.index,
                f'{as_time(window.start, window.moment)} AS "{window.index}"',
            )
        )
        columns.append(DrawnColumn(window.index, "stamp" if window.moment else "i64"))
    else:
        for border, value in (("window_start", window.start), ("window_end", window.end)):
            if border == window.time or draw.chance(0.6):
                name = maker.name(border[7])
                at_name = name if border == window.time else at_name
                written.append((f"{border} AS {name}", f'{as_time(value, stamps)} AS "{name}"'))
                columns.append(DrawnColumn(name, kind))
    comparable = [Both("COUNT(*)", "count(*)", "i64")]
    for number, one in enumerate(aggregates):
        name = aliases[number]
        ours, duck = one.ours, one.placed(number)
        if one.kind == "i64" and draw.chance(0.15):
            ours, duck = f"{ours} / 3 + COUNT(*)", f"floor_div({duck}, 3) + count(*)"
        if one.kind == "i64" and one.exact:
            # HAVING can compare the aggregate, or what it is called in the SELECT list
            comparable += [Both(ours, duck, "i64"), Both(name, duck, "i64")]
        written.append((f"{ours} AS {name}", f'{duck} AS "{name}"'))
        # Sums of sums may leave what is exact; counts stay small
        columns.append(DrawnColumn(name, one.kind, ours.startswith("COUNT"), one.exact))
    draw.shuffle(both := list(zip(written, columns, strict=True)))
    written, columns = [one for one, _ in both], [one for _, one in both]

    named = [
        f"{key.ours}{'' if out else f' AS {name}'}" for key, name in zip(keys, names, strict=True)
    ]
    named.append(window.ours.partition(" AS ")[0] if out else window.ours)
    draw.shuffle(named)
    if out and window.index and draw.chance(0.3):
        named = ["ALL"]
    having = _having(draw, comparable) if draw.chance(0.3) else None
    conditions = [f"count(*) = {window.size}"] if window.size else []
    conditions += [having.duck] if having else []
    ours = f"SELECT {', '.join(one for one, _ in written)} FROM {read.ours}"
    ours += f" WHERE {where.ours}" if where else ""
    ours += f" GROUP BY {', '.join(named)}" + (f" HAVING {having.ours}" if having else "")
    duck = f"SELECT {', '.join(one for _, one in written)} FROM ({rows})"
    duck += f" GROUP BY {', '.join([*groups, '__w'])}"
    duck += f" HAVING {' AND '.join(conditions)}" if conditions else ""
    told = Time(at_name, stamps and (window.moment or not window.index), window.unit)
    lasting = ("TUMBLE", "window", time.column, f"{alias}.")
    keys_of = (*names, at_name) if window.ours.startswith(lasting) else ()
    return Relation(ours, duck, tuple(columns), told, views=source.views, keys=keys_of)


def _key(writer: ExpressionWriter) -> Both:
    """What to group by: it reads a column, for a constant would be a place in the SELECT list."""
    for _ in range(10 if writer.columns else 0):
        key = writer.any(writer.draw.pick((0, 0, 0, 1, 2)))
        if key.exact and any(column.ours in key.ours for column in writer.columns):
            return key
    return next(column for column in writer.columns if column.exact)


def _aggregate(writer: ExpressionWriter, arrival: bool) -> AggregateForm:
    draw = writer.draw
    filtered = condition(writer, 1) if draw.chance(0.25) else None
    ours_filter = f" FILTER (WHERE {filtered.ours})" if filtered else ""
    duck_filter = " FILTER (WHERE {f})" if filtered else ""
    made = _call(writer, arrival and filtered is None)
    return replace(
        made,
        ours=made.ours + ours_filter,
        duck=made.duck.replace("{filter}", duck_filter),
        filter=filtered.duck if filtered else "TRUE",
    )


def _call(writer: ExpressionWriter, ordered: bool) -> AggregateForm:
    """An aggregate of some expression; `{filter}` is where DuckDB's FILTER goes."""
    draw = writer.draw
    if draw.chance(0.2):
        ours, duck, kind, argument, exact = collected(writer, ordered)
        return AggregateForm(ours, duck, kind, argument, exact=exact)
    form = draw.randrange(12 if ordered else 11)
    if form < 2:
        return AggregateForm("COUNT(*)", "count(*){filter}", "i64")
    if form in (2, 3):
        value = writer.any(2)
        while not value.exact:
            value = writer.any(1)
        ours, duck = {
            0: ("COUNT({})", "count({a}){filter}"),
            1: ("COUNT(DISTINCT {})", "count(DISTINCT {a}){filter}"),
            2: ("APPROX_DISTINCT({})", "count(DISTINCT {a}){filter}"),
        }[draw.randrange(3)]
        return AggregateForm(ours.replace("{}", value.ours), duck, "i64", value.duck)
    if form in (4, 5):
        family = draw.pick([name for name in writer.families() if name != "truth"] or ["int"])
        value = writer.of(family, draw.randint(0, 2))
        name = draw.pick(("MIN", "MAX"))
        return AggregateForm(
            f"{name}({value.ours})", f"{name.lower()}({{a}}){{filter}}", value.kind, value.duck,
            exact=value.exact,
        )  # fmt: skip
    if form == 11:
        value = writer.any(1)
        name = draw.pick(("FIRST", "LAST"))
        way = "" if name == "FIRST" else " DESC"
        return AggregateForm(
            f"{name}({value.ours})", f"first({{a}} ORDER BY __t{way}, __n{way})", value.kind, value.duck,
            exact=value.exact,
        )  # fmt: skip
    if form == 10:
        value = writer.of("int", 1)
        name = draw.pick(("BIT_OR", "BIT_AND", "BIT_XOR", "OR_AGGR", "AND_AGGR", "XOR_AGGR"))
        duck = name.lower() if name.startswith("BIT") else f"bit_{name[:-5].lower()}"
        return AggregateForm(
            f"{name}({value.ours})",
            f"{duck}({{a}}){{filter}}",
            "i64",
            f"CAST({value.duck} AS BIGINT)",
        )
    families = [name for name in ("int", "float") if writer.known(name, tame=True)]
    if form in (6, 7) and writer.known("decimal"):
        families.append("decimal")
    value = _tame(writer, draw.pick(families or ["int"]))
    if form in (6, 7):
        kind = {"d2": "d2", "d4": "d4", "f32": "f64", "f64": "f64"}.get(value.kind, "i64")
        # A sum of floats of 32 bits is one of 64 here
        argument = f"CAST({value.duck} AS DOUBLE)" if value.kind == "f32" else value.duck
        duck = "CAST(sum({a}){filter} AS BIGINT)" if kind == "i64" else "sum({a}){filter}"
        return AggregateForm(f"SUM({value.ours})", duck, kind, argument)
    name = draw.pick(("AVG", "MEAN")) if form == 8 else draw.pick(("VAR", "STDDEV", "VARIANCE"))
    duck = {"AVG": "avg", "MEAN": "avg", "STDDEV": "stddev_samp"}.get(name, "var_samp")
    return AggregateForm(
        f"{name}({value.ours})",
        f"{duck}({{a}}){{filter}}",
        "f64",
        f"CAST({value.duck} AS DOUBLE)",
        exact=False,
    )


def _tame(writer: ExpressionWriter, family: str) -> Both:
    """A small number, whose sums are the same in any order."""
    draw = writer.draw
    value = writer.leaf(family, tame=True)
    if family == "int" and draw.chance(0.4):
        by = draw.randint(-9, 9)
        return Both(f"({value.ours} * ({by}))", f"(CAST({value.duck} AS BIGINT) * ({by}))", "i64")
    if family == "float" and draw.chance(0.3):
        return Both(f"({value.ours} + 0.5e0)", f"({value.duck} + 0.5e0)", "f64")
    return value


def _having(draw: Draw, comparable: list[Both]) -> Both:
    value = draw.pick(comparable)
    sign, number = draw.pick((">", "<=", "<>", "=")), draw.randint(0, 8)
    return Both(f"{value.ours} {sign} {number}", f"{value.duck} {sign} {number}", "truth")
