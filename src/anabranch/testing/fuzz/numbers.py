"""Random arithmetic: whole numbers with wrap-around and floor division, fractions, decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.testing.fuzz.draw import TYPES, Both, Draw

if TYPE_CHECKING:
    from anabranch.testing.fuzz.writer import ExpressionWriter

_EXTREMES = (2**63 - 1, -(2**63) + 1, 2**31, -(2**31), 2**32, 255, -128, 2**53 + 1)


def whole(draw: Draw, tame: bool) -> Both:
    """A constant whole number."""
    if not tame and draw.chance(0.15):
        number = draw.pick(_EXTREMES)
        return Both(f"({number})", f"({number})", "i64", tame=False)
    number = draw.randint(-9, 20)
    return Both(*(f"({number})" if number < 0 else str(number),) * 2, "i64")


def fraction(draw: Draw) -> Both:
    """A constant float whose digits are exact in two's powers."""
    number = draw.randint(-40, 40) / 4
    # With an exponent it is a DOUBLE; without, a DECIMAL
    return Both(*(f"({number!r}e0)",) * 2, "f64")


def wide(value: Both) -> str:
    return f"wide({value.duck})"


def computed_whole(writer: ExpressionWriter, depth: int) -> Both:
    """A whole number of 64 bits from others, from texts, times or floats."""
    draw = writer.draw
    form = draw.randrange(13)
    if form >= 10:
        return _measured(writer, depth)
    left = writer.of("int", depth)
    if form == 8:
        sign = draw.pick(("-", "~", "ABS", "SIGN"))
        duck = {
            "-": f"wrapped(-{wide(left)})", "~": f"(~CAST({left.duck} AS BIGINT))",
            "ABS": f"wrapped(abs({wide(left)}))", "SIGN": f"CAST(sign({left.duck}) AS BIGINT)",
        }[sign]  # fmt: skip
        # The complement of a number without a sign has none either, so it depends on the width
        inner = f"CAST({left.ours} AS BIGINT)" if sign == "~" else left.ours
        ours = f"({sign}({inner}))" if sign in "-~" else f"{sign}({inner})"
        return Both(ours, duck, "i64", left.tame)
    if form == 9:
        bits = draw.randint(0, 63)
        if draw.chance(0.5):
            return Both(
                f"({left.ours} << {bits})", f"wrapped({wide(left)} * power2({bits}))", "i64", False
            )
        return Both(f"({left.ours} >> {bits})", f"halved({left.duck}, {bits})", "i64", left.tame)
    if form in (6, 7):
        # The divisor stands several times in DuckDB's text: keep it short
        by = writer.leaf("int")
        sign = draw.pick(("/", "//", "%", "MOD"))
        name = "floor_div" if "/" in sign else "floor_mod"
        ours = (
            f"MOD({left.ours}, {by.ours})" if sign == "MOD" else f"({left.ours} {sign} {by.ours})"
        )
        return Both(ours, f"{name}({left.duck}, {by.duck})", "i64", left.tame and by.tame)
    right = writer.of("int", depth)
    if form == 5:
        sign = draw.pick("&|^")
        duck = (
            f"xor(CAST({left.duck} AS BIGINT), CAST({right.duck} AS BIGINT))"
            if sign == "^"
            else f"(CAST({left.duck} AS BIGINT) {sign} CAST({right.duck} AS BIGINT))"
        )
        return Both(f"(({left.ours}) {sign} ({right.ours}))", duck, "i64", left.tame and right.tame)
    sign = draw.pick("+-*")
    small = sign != "*" and left.tame and right.tame
    return Both(
        f"({left.ours} {sign} {right.ours})",
        f"wrapped({wide(left)} {sign} {wide(right)})",
        "i64",
        small,
    )


def _measured(writer: ExpressionWriter, depth: int) -> Both:
    """A whole number that something of another family has."""
    draw = writer.draw
    if writer.known("stamp") and draw.chance(0.4):
        at = writer.of("stamp", depth)
        part = draw.pick(
            ("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second")
        )
        form = draw.randrange(3)
        ours = (
            f"{part.upper()}({at.ours})",
            f"EXTRACT({part} FROM {at.ours})",
            f"DATE_PART('{part}', {at.ours})",
        )[form]
        return Both(ours, f"CAST(date_part('{part}', {at.duck}) AS BIGINT)", "i64")
    if writer.known("day") and draw.chance(0.4):
        at = writer.of("day", depth)
        part = draw.pick(("year", "quarter", "month", "week", "day", "dow", "doy"))
        return Both(
            f"EXTRACT({part} FROM {at.ours})",
            f"CAST(date_part('{part}', {at.duck}) AS BIGINT)",
            "i64",
        )
    if writer.known("float", tame=True) and draw.chance(0.5):
        number = writer.leaf("float", tame=True)
        return Both(f"CAST({number.ours} AS BIGINT)", f"cut({number.duck})", "i64")
    if draw.chance(0.3):
        truth = writer.of("truth", depth)
        return Both(f"CAST({truth.ours} AS BIGINT)", f"CAST({truth.duck} AS BIGINT)", "i64")
    if draw.chance(0.3):
        # What is left by 100 fits any type with a sign
        number = writer.leaf("int", tame=True)
        number = Both(f"({number.ours} % 100)", f"floor_mod({number.duck}, 100)", "i64")
        kind = draw.pick(("i8", "i16", "i32", "i64"))
        return Both(
            f"CAST({number.ours} AS {TYPES[kind]})", f"CAST({number.duck} AS {TYPES[kind]})", kind
        )
    if draw.chance(0.3):
        number = writer.of("int", depth)
        name = draw.pick(("FLOOR", "CEIL", "ROUND"))
        return Both(
            f"CAST({name}({number.ours}) AS BIGINT)",
            f"CAST({number.duck} AS BIGINT)",
            "i64",
            number.tame,
        )
    text = writer.of("text", depth)
    if draw.chance(0.3):
        ours, duck = f"TRY_CAST({text.ours} AS BIGINT)", f"TRY_CAST({text.duck} AS BIGINT)"
        return Both(ours, duck, "i64", tame=False)
    name = draw.pick(("LENGTH", "CHAR_LENGTH", "LEN"))
    return Both(f"{name}({text.ours})", f"length({text.duck})", "i64")


def computed_fraction(writer: ExpressionWriter, depth: int) -> Both:
    """A float from others or from whole numbers."""
    draw = writer.draw
    form = draw.randrange(10)
    if form == 0:
        number = writer.leaf("int", tame=True)
        sign, part = draw.pick("+-*/"), draw.pick((0.5, 2.0, -4.0))
        return Both(
            f"({number.ours} {sign} ({part}e0))",
            f"({number.duck} {sign} ({part}e0))",
            "f64",
        )
    if form == 1:
        number = writer.of("int", depth)
        return Both(
            f"CAST({number.ours} AS DOUBLE)", f"CAST({number.duck} AS DOUBLE)", "f64", number.tame
        )
    left = writer.leaf("float", tame=True) if form < 8 else writer.of("float", depth)
    if left.kind == "f32" and (form < 7 or draw.chance(0.5)):
        left = Both(
            f"CAST({left.ours} AS DOUBLE)", f"CAST({left.duck} AS DOUBLE)", "f64", left.tame
        )
    if form == 2:
        return _rounded(writer, left)
    if form == 3:
        name = draw.pick(("ABS", "FLOOR", "CEIL", "ROUND"))
        duck = "round_even({}, 0)" if name == "ROUND" else f"{name.lower()}({{}})"
        return Both(f"{name}({left.ours})", duck.format(left.duck), "f64", left.tame, left.exact)
    if form == 4:
        name = draw.pick(("SQRT", "LN", "LOG10", "EXP", "POWER"))
        ours, duck = f"ABS({left.ours})", f"abs({left.duck})"
        if name in ("LN", "LOG10"):
            ours, duck = f"{ours} + 1", f"{duck} + 1"
        if name == "EXP":
            ours, duck = f"LEAST({left.ours}, 9e0)", f"least({left.duck}, 9e0)"
        by = f", {draw.randint(0, 3)}" if name == "POWER" else ""
        return Both(
            f"{name}({ours}{by})", f"{name.lower()}({duck}{by})", "f64", tame=False, exact=False
        )
    if form == 5 and writer.known("stamp"):
        at = writer.of("stamp", depth)
        return Both(f"EPOCH({at.ours})", f"epoch({at.duck})", "f64", tame=False)
    if form == 6:
        divisor = draw.pick((2.0, 4.0, 0.5, -8.0))
        ours, duck = f"({left.ours} / ({divisor}e0))", f"({left.duck} / ({divisor}e0))"
        return Both(ours, duck, "f64", False, left.exact)
    right = writer.leaf("float", tame=True)
    if right.kind == "f32" and draw.chance(0.5):
        right = Both(f"CAST({right.ours} AS DOUBLE)", f"CAST({right.duck} AS DOUBLE)", "f64", True)
    sign = draw.pick("+-*")
    tame = sign != "*" and left.tame and right.tame
    return Both(
        f"({left.ours} {sign} {right.ours})", f"({left.duck} {sign} {right.duck})", "f64", tame,
        left.exact,
    )  # fmt: skip


def _rounded(writer: ExpressionWriter, left: Both) -> Both:
    """A float to some digits, or what a division by a power of two leaves of it."""
    draw = writer.draw
    form = draw.randrange(3)
    if form == 0:
        digits = draw.randint(0, 3)
        return Both(
            f"ROUND({left.ours}, {digits})",
            f"round_even({left.duck}, {digits})",
            "f64",
            False,
            False,
        )
    by = draw.pick((2.0, 4.0, 0.5))
    whole = f"floor({left.duck} / {by}e0)"
    if form == 1:
        return Both(f"({left.ours} // {by}e0)", whole, "f64", False)
    return Both(f"({left.ours} % {by}e0)", f"({left.duck} - {whole} * {by}e0)", "f64")


def computed_decimal(writer: ExpressionWriter, depth: int) -> Both:
    """A sum, difference or product of decimals."""
    left, right = writer.leaf("decimal"), writer.leaf("decimal")
    sign = writer.draw.pick("+-*")
    ours, duck = f"({left.ours} {sign} {right.ours})", f"({left.duck} {sign} {right.duck})"
    return Both(ours, duck, "d4", tame=False)
