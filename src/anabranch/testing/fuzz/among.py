"""Random rows among others: numbers of the rows of a window, the best of them, rows before and after."""

from __future__ import annotations

from anabranch.testing.fuzz.draw import TYPES, Both, DrawnColumn
from anabranch.testing.fuzz.relation import CaseMaker, Relation, Time, select
from anabranch.testing.fuzz.writer import ExpressionWriter

SIZES = (1, 5, 20, 60)


def best(maker: CaseMaker, source: Relation) -> Relation:
    """Rows numbered within windows, all or the best of them; ties by what is read."""
    draw, time = maker.draw, source.time
    assert time is not None
    alias = maker.name("b")
    writer = ExpressionWriter(draw, source.seen_as(alias))
    at = Both(f"{alias}.{time.column}", f'{alias}."{time.column}"', "")
    values = [writer.leaf(draw.pick(("int", "text"))) for _ in range(draw.randint(1, 2))]
    keys = [writer.leaf(draw.pick(("int", "text"))) for _ in range(draw.randint(0, 1))]
    size = draw.pick(SIZES)
    ours_window = (
        f"TUMBLE({at.ours}, INTERVAL '{size}' SECOND)" if time.stamps else f"{at.ours} // {size}"
    )
    duck_window = (
        f"epoch_us({at.duck}) // {size * 1_000_000}"
        if time.stamps
        else f"floor({at.duck} / {size})"
    )
    turned = " DESC" if draw.chance(0.5) else ""
    nulls = " NULLS FIRST" if draw.chance(0.3) else ""
    # All that is read: rows that are alike in it cannot be told apart
    texts = [part.duck for part in (*values, *keys, at)]
    read = (column.of(alias).duck for column in source.columns)
    rest = ", ".join(f"{name} NULLS FIRST" for name in read if any(name in one for one in texts))
    number = draw.pick(("ROW_NUMBER", "RANK", "DENSE_RANK"))
    by = f"{values[0].duck}{turned}{nulls or ' NULLS LAST'}"
    exact = f"{by}, {rest}" if number == "ROW_NUMBER" else by
    ours_over = f"PARTITION BY {', '.join([ours_window, *(key.ours for key in keys)])} ORDER BY "
    duck_over = f"PARTITION BY {', '.join([duck_window, *(key.duck for key in keys)])} ORDER BY "
    ours = f"{number}() OVER ({ours_over}{values[0].ours}{turned}{nulls})"
    duck = f"{number}() OVER ({duck_over}{exact})"
    shown = [at.as_("t")]
    columns = [DrawnColumn("t", "stamp" if time.stamps else "i64", tame=False)]
    for place, value in enumerate((*values, *keys)):
        shown.append(value.as_(f"c{place}"))
        columns.append(DrawnColumn(f"c{place}", value.kind, value.tame, value.exact))
    if number != "ROW_NUMBER" or len(values) + len(keys) < 3:
        shown.append(Both(ours, f"CAST({duck} AS {TYPES['i64']})", "").as_("n"))
        columns.append(DrawnColumn("n", "i64"))
    both = select(shown, source.read_as(alias), None)
    ours_text, duck_text = both.ours, both.duck
    if draw.chance(0.7):
        most = draw.randint(1, 4)
        ours_text += f" QUALIFY {ours} <= {most}"
        duck_text += f" QUALIFY {duck} <= {most}"
    told = Time("t", time.stamps, time.unit)
    return Relation(ours_text, duck_text, tuple(columns), told, views=source.views)


def around(maker: CaseMaker, source: Relation) -> Relation:
    """LAG, running numbers and frames in the order of time."""
    draw, time = maker.draw, source.time
    assert time is not None
    assert source.arrival
    alias = maker.name("a")
    writer = ExpressionWriter(draw, source.seen_as(alias))
    at = Both(f"{alias}.{time.column}", f'{alias}."{time.column}"', "")
    key = writer.leaf(draw.pick(("int", "text")))
    ours_over = f"PARTITION BY {key.ours} ORDER BY {at.ours}"
    exact = f"PARTITION BY {key.duck} ORDER BY {at.duck}, {alias}.__n"
    peers = f"PARTITION BY {key.duck} ORDER BY {at.duck}"
    value = writer.leaf("int", tame=True)
    rows = draw.randint(1, 4)
    frame = f"ROWS BETWEEN {rows} PRECEDING AND {draw.pick(('CURRENT ROW', '1 PRECEDING'))}"
    forms = [
        (f"LAG({{v}}, {rows}) OVER ({{o}})", exact, ""), ("ROW_NUMBER() OVER ({o})", exact, ""),
        ("RANK() OVER ({o})", peers, ""), ("SUM({v}) OVER ({o})", peers, ""),
        ("COUNT({v}) OVER ({o})", peers, ""), ("MAX({v}) OVER ({o})", peers, ""),
        (f"SUM({{v}}) OVER ({{o}} {frame})", exact, ""),
        ("FIRST_VALUE({v}) OVER ({o} ROWS UNBOUNDED PRECEDING)", exact, ""),
    ]  # fmt: skip
    if draw.chance(0.3):
        forms += [(f"LEAD({{v}}, {rows}, -1) OVER ({{o}})", exact, "")] * 4
    elif not time.stamps and time.unit == 1:
        forms += [(f"SUM({{v}}) OVER ({{o}} RANGE {draw.pick(SIZES)} PRECEDING)", peers, "")] * 3
    shown = [at.as_("t")]
    columns = [DrawnColumn("t", "stamp" if time.stamps else "i64", tame=False)]
    for place in range(draw.randint(1, 3)):
        form, over, _ = draw.pick(forms)
        ours = form.format(v=value.ours, o=ours_over)
        duck = form.format(v=value.duck, o=over)
        shown.append(Both(ours, f"CAST({duck} AS {TYPES['i64']})", "").as_(f"w{place}"))
        columns.append(DrawnColumn(f"w{place}", "i64", tame=False))
    both = select(shown, source.read_as(alias), None)
    waits = "LEAD" in both.ours
    told = None if waits else Time("t", time.stamps, time.unit)
    return Relation(both.ours, both.duck, tuple(columns), told, views=source.views)
