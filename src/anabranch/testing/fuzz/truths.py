"""Random conditions: comparisons, logic with NULL, IN, BETWEEN, LIKE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.testing.fuzz.draw import Both
from anabranch.testing.fuzz.texts import pattern, quoted

if TYPE_CHECKING:
    from anabranch.testing.fuzz.writer import ExpressionWriter

_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "!=")


def condition(writer: ExpressionWriter, depth: int) -> Both:
    """A condition over the columns at hand."""
    draw = writer.draw
    form = draw.randrange(14)
    if depth > 0 and form < 4:
        return _logic(writer, depth, form)
    if form in (4, 5):
        return _of_texts(writer, depth)
    if form == 6:
        return _listed(writer)
    if form == 10 and draw.chance(0.5):
        return _across(writer)
    family = draw.pick([*writer.families(), "int"])
    family = "int" if family == "truth" else family
    value = _comparable(writer, family, depth)
    if form == 7:
        test = draw.pick(("IS NULL", "IS NOT NULL"))
        return Both(f"({value.ours} {test})", f"({value.duck} {test})", "truth")
    if form == 8:
        low, high = (_comparable(writer, family, 0) for _ in range(2))
        negated = draw.pick(("", "NOT "))
        return Both(
            f"({value.ours} {negated}BETWEEN {low.ours} AND {high.ours})",
            f"({value.duck} {negated}BETWEEN {low.duck} AND {high.duck})",
            "truth",
        )
    other = _comparable(writer, family, depth)
    sign = draw.pick(_SIGNS)
    if form == 9:
        sign = draw.pick(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    return Both(
        f"({value.ours} {sign} {other.ours})", f"({value.duck} {sign} {other.duck})", "truth"
    )


def _comparable(writer: ExpressionWriter, family: str, depth: int) -> Both:
    for _ in range(5):
        value = writer.of(family, depth)
        if value.exact:
            return value
    return writer.leaf(family)


def _logic(writer: ExpressionWriter, depth: int, form: int) -> Both:
    left = condition(writer, depth - 1)
    if form == 0:
        return Both(f"(NOT {left.ours})", f"(NOT {left.duck})", "truth")
    if form == 1:
        test = writer.draw.pick(("IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"))
        return Both(f"({left.ours} {test})", f"({left.duck} {test})", "truth")
    known = writer.known("truth")
    right = (
        writer.draw.pick(known)
        if known and writer.draw.chance(0.4)
        else condition(writer, depth - 1)
    )
    sign = writer.draw.pick(("AND", "OR"))
    return Both(f"({left.ours} {sign} {right.ours})", f"({left.duck} {sign} {right.duck})", "truth")


def _of_texts(writer: ExpressionWriter, depth: int) -> Both:
    draw = writer.draw
    text = writer.of("text", depth - 1)
    if draw.chance(0.4):
        name = draw.pick(("STARTS_WITH", "ENDS_WITH", "CONTAINS"))
        piece = quoted(draw) if draw.chance(0.7) else writer.leaf("text")
        return Both(
            f"{name}({text.ours}, {piece.ours})",
            f"{name.lower()}({text.duck}, {piece.duck})",
            "truth",
        )
    sign = draw.pick(("LIKE", "NOT LIKE", "ILIKE"))
    like = pattern(draw)
    return Both(f"({text.ours} {sign} {like})", f"({text.duck} {sign} {like})", "truth")


def _across(writer: ExpressionWriter) -> Both:
    """A comparison of two families: whole numbers with fractions or without a sign, dates with times."""
    draw = writer.draw
    pairs = [("int", "float")]
    pairs += [("u64", "int")] if writer.known("u64") else []
    pairs += [("day", "stamp")] if writer.known("day") and writer.known("stamp") else []
    families = draw.pick(pairs)
    # Beyond 53 bits a float cannot tell whole numbers apart
    one, other = (writer.leaf(family, tame=families[1] == "float") for family in families)
    if draw.chance(0.5):
        one, other = other, one
    sign = draw.pick(_SIGNS)
    return Both(f"({one.ours} {sign} {other.ours})", f"({one.duck} {sign} {other.duck})", "truth")


def _listed(writer: ExpressionWriter) -> Both:
    """IN a list of constants, with NULL among them at times."""
    draw = writer.draw
    family = draw.pick([name for name in writer.families() if name in ("int", "text")] or ["int"])
    value = writer.of(family, 1)
    options = [writer.constant(family).ours for _ in range(draw.randint(1, 4))]
    if draw.chance(0.15):
        options.append("NULL")
    negated = draw.pick(("", "NOT "))
    listed = ", ".join(options)
    return Both(
        f"({value.ours} {negated}IN ({listed}))", f"({value.duck} {negated}IN ({listed}))", "truth"
    )
