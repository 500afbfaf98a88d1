"""Random functions of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.testing.fuzz.draw import Both, Draw

if TYPE_CHECKING:
    from anabranch.testing.fuzz.writer import ExpressionWriter

WORDS = (
    "", " ", "a", "A", "ab", "Ab", "abc", "b", "ba", "  pad ", "x-y-z", "-", "10", "7", "-3", "a%b", "a_b",
    "it's", 'say "so"', "é", "Éa", "日本", "z😀z", "tab\there", "two\nlines", "a,b", "nan", "NULL", "true",
)  # fmt: skip
"""Texts that something may stumble over: empty ones, quotes, patterns, other scripts, ends of lines."""
_PATTERNS = ("a%", "%b", "%a%", "_", "__", "a_b", "%", "", "A%", "é%", "%-%", "a\\%b")


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def quoted(draw: Draw) -> Both:
    """A constant text."""
    text = literal(draw.pick(WORDS))
    return Both(text, text, "text")


def pattern(draw: Draw) -> str:
    return literal(draw.pick(_PATTERNS))


def computed(writer: ExpressionWriter, depth: int) -> Both:
    """A text from others, or from numbers and times."""
    draw = writer.draw
    if draw.chance(0.15):
        return _told(writer, depth)
    text = writer.of("text", depth)
    match draw.randrange(13):
        case 0:
            name = draw.pick(("UPPER", "LOWER"))
            return Both(f"{name}({text.ours})", f"{name.lower()}({text.duck})", "text")
        case 1 | 2:
            right = writer.of("text", depth)
            ours = (
                f"({text.ours} || {right.ours})"
                if draw.chance(0.6)
                else f"CONCAT({text.ours}, {right.ours})"
            )
            return Both(ours, f"({text.duck} || {right.duck})", "text")
        case 3:
            start, length = draw.randint(-3, 5), draw.randint(0, 4)
            if draw.chance(0.3):
                return Both(
                    f"SUBSTRING({text.ours}, {start})", f"substring({text.duck}, {start})", "text"
                )
            if draw.chance(0.2):
                return Both(
                    f"SUBSTRING({text.ours} FROM {start} FOR {length})",
                    f"substring({text.duck}, {start}, {length})",
                    "text",
                )
            return Both(
                f"SUBSTRING({text.ours}, {start}, {length})",
                f"substring({text.duck}, {start}, {length})",
                "text",
            )
        case 4:
            name, count = draw.pick(("LEFT", "RIGHT")), draw.randint(0, 4)
            return Both(
                f"{name}({text.ours}, {count})", f"{name.lower()}({text.duck}, {count})", "text"
            )
        case 5:
            name = draw.pick(("TRIM", "LTRIM", "RTRIM"))
            what = draw.pick(("", ", 'a'", ", 'ab '"))
            if draw.chance(0.2):
                side = {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}[name]
                return Both(
                    f"TRIM({side} 'a' FROM {text.ours})",
                    f"{name.lower()}({text.duck}, 'a')",
                    "text",
                )
            return Both(f"{name}({text.ours}{what})", f"{name.lower()}({text.duck}{what})", "text")
        case 6:
            old, new = literal(draw.pick(("a", "b", "-", " ", "ab"))), literal(draw.pick(WORDS))
            return Both(
                f"REPLACE({text.ours}, {old}, {new})", f"replace({text.duck}, {old}, {new})", "text"
            )
        case 7:
            by, number = literal(draw.pick(("-", "a", ","))), draw.randint(1, 3)
            return Both(
                f"SPLIT_PART({text.ours}, {by}, {number})",
                f"split_part({text.duck}, {by}, {number})",
                "text",
            )
        case 8:
            return Both(f"REVERSE({text.ours})", f"reverse({text.duck})", "text")
        case 9:
            name, count = draw.pick(("LPAD", "RPAD")), draw.randint(0, 5)
            fill = literal(draw.pick(("*", "ab", "é")))
            return Both(
                f"{name}({text.ours}, {count}, {fill})",
                f"{name.lower()}({text.duck}, {count}, {fill})",
                "text",
            )
        case 10:
            old, new = (
                literal(draw.pick(("[ab]", "a+", "^.", "[0-9]+$"))),
                literal(draw.pick(("", "x", "<>"))),
            )
            flags = draw.pick(("", ", 'g'"))
            return Both(
                f"REGEXP_REPLACE({text.ours}, {old}, {new}{flags})",
                f"regexp_replace({text.duck}, {old}, {new}{flags})",
                "text",
            )
        case 11:
            old = literal(draw.pick(("[a-z]", "([a-z])-", "é|a")))
            return Both(
                f"REGEXP_EXTRACT({text.ours}, {old})", f"regexp_extract({text.duck}, {old})", "text"
            )
    return text


def _told(writer: ExpressionWriter, depth: int) -> Both:
    """A value of another family as a text."""
    draw = writer.draw
    family = draw.pick(("int", "int", "day", "truth", "stamp"))
    value = writer.of(family, depth)
    if family == "int" and draw.chance(0.2):
        return Both(f"IP_TEXT({value.ours})", f"dotted(CAST({value.duck} AS BIGINT))", "text")
    return Both(f"CAST({value.ours} AS VARCHAR)", f"CAST({value.duck} AS VARCHAR)", "text")
