"""DECIMAL: the types of its results, which are DuckDB's, and arithmetic that loses no digit.

Polars keeps decimals as whole numbers of 128 bits and refuses sums that leave 38 digits, but it rounds
products to the scale of a factor, and halves to even. Here products keep all digits, and a half is rounded
away from zero. Values that need more digits than their type has are an error, never cut.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import polars as pl

from anabranch.errors import LanguageError

MOST_DIGITS = 38
QUICK_DIGITS = 18
"""Products of numbers of so many digits have no more, as in DuckDB: cast a factor if that is too few."""
WHOLE = pl.Decimal(MOST_DIGITS, 0)
_DIGITS: dict[type[pl.DataType], int] = {
    pl.Int8: 3, pl.Int16: 5, pl.Int32: 10, pl.Int64: 19,
    pl.UInt8: 3, pl.UInt16: 5, pl.UInt32: 10, pl.UInt64: 20,
}  # fmt: skip
_ZERO = pl.lit(0, pl.Int128)
_EXACT = decimal.Context(prec=2 * MOST_DIGITS, Emax=1000, Emin=-1000)


class Pointed(decimal.Decimal):
    """A number with a point as SQL writes it: a decimal beside decimals, else a float.

    A plain `Decimal`, as Python has it, is a decimal wherever it stands.
    """


def decimal_of(kind: pl.DataType, value: object = None) -> pl.Decimal | None:
    """The decimal type that holds a type's values, or a constant of it; None if there is none.

    >>> decimal_of(pl.Int16()), decimal_of(pl.Float64(), decimal.Decimal("0.10"))
    (Decimal(precision=5, scale=0), Decimal(precision=3, scale=2))
    """
    if isinstance(kind, pl.Decimal):
        return kind
    if isinstance(value, decimal.Decimal):
        digits, scale = len(value.as_tuple().digits), max(0, -int(value.as_tuple().exponent))
        # A zero before the point counts, as in DuckDB
        return pl.Decimal(min(MOST_DIGITS, max(digits, scale + 1)), scale)
    if type(value) is int:
        return pl.Decimal(10 if -(2**31) <= value < 2**31 else 19, 0)
    digits = _DIGITS.get(kind.base_type(), 0)
    return pl.Decimal(digits, 0) if digits else None


def fits_decimal(value: object) -> bool:
    """Whether a constant has digits that a decimal can have."""
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        return False
    digits, exponent = len(value.as_tuple().digits), int(value.as_tuple().exponent)
    return exponent <= 0 and max(digits, 1 - exponent) <= MOST_DIGITS


def common(kinds: Sequence[pl.Decimal]) -> pl.Decimal:
    """The type that holds the values of all."""
    scale = max(kind.scale for kind in kinds)
    whole = max(kind.precision - kind.scale for kind in kinds)
    if whole + scale > MOST_DIGITS:
        shown = " and ".join(sorted({str(kind) for kind in kinds}))
        raise LanguageError(
            f"no decimal holds the values of {shown}: that would take {whole + scale} digits, and "
            f"{MOST_DIGITS} are the most. Cast them to one type, e.g. CAST(x AS DECIMAL(38, {scale}))."
        )
    return pl.Decimal(whole + scale, scale)


def sum_type(left: pl.Decimal, right: pl.Decimal) -> pl.Decimal:
    both = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    return pl.Decimal(min(MOST_DIGITS, both + scale + 1), scale)


def product_type(left: pl.Decimal, right: pl.Decimal) -> pl.Decimal:
    scale = left.scale + right.scale
    if scale > MOST_DIGITS:
        raise LanguageError(
            f"the product of {left} and {right} has {scale} digits after the point; a decimal has "
            f"{MOST_DIGITS} at most. Cast a factor to fewer, or to double."
        )
    quick = max(left.precision, right.precision) <= QUICK_DIGITS and scale < QUICK_DIGITS
    most = QUICK_DIGITS if quick else MOST_DIGITS
    return pl.Decimal(min(most, left.precision + right.precision), scale)


def constant(value: int | decimal.Decimal, kind: pl.Decimal) -> pl.Expr:
    return pl.lit(decimal.Decimal(value), kind)


def unscaled(value: pl.Expr, scale: int) -> pl.Expr:
    """Whole numbers of 128 bits as decimals with so many of their digits after the point."""
    whole = value.cast(WHOLE)
    # A product has the scale of its finer factor, and here exactly: no digit is lost
    return whole if scale == 0 else whole * _power(-scale)


def _power(exponent: int) -> pl.Expr:
    power = decimal.Decimal(1).scaleb(exponent, _EXACT)
    return pl.lit(power, pl.Decimal(MOST_DIGITS, max(0, -exponent)))


def multiply(left: pl.Expr, right: pl.Expr, kind: pl.Decimal) -> pl.Expr:
    """The product of two decimals, with all of its digits."""
    product = left.to_physical().cast(WHOLE) * right.to_physical().cast(WHOLE)
    return unscaled(product.to_physical(), kind.scale).cast(kind)


def divide_down(left: pl.Expr, right: pl.Expr, remainder: bool) -> pl.Expr:
    """The quotient rounded down, or what is left over; NULL where the divisor is zero."""
    # Polars stops at a zero even where the result is not asked for
    divisor = pl.when(right != 0).then(right)
    return left % divisor if remainder else left // divisor


def rounded(value: pl.Expr, scale: int, digits: int) -> pl.Expr:
    """A decimal with fewer digits after the point, halves away from zero, of 38 digits in all."""
    unit = 10 ** (scale - digits)
    whole = value.to_physical()
    size = (whole.abs() + pl.lit(unit // 2, pl.Int128)) // pl.lit(unit, pl.Int128)
    # A sign apart: Polars does not negate numbers of 128 bits
    return unscaled(pl.when(whole < 0).then(_ZERO - size).otherwise(size), digits)


def rounded_down(value: pl.Expr, scale: int, up: bool) -> pl.Expr:
    """The next whole number below, or above."""
    unit = pl.lit(10**scale, pl.Int128)
    whole = value.to_physical()
    return (_ZERO - (_ZERO - whole) // unit if up else whole // unit).cast(WHOLE)


def rescaled(value: pl.Expr, kind: pl.Decimal, wanted: pl.Decimal, strict: bool = True) -> pl.Expr:
    """A decimal as one of another type."""
    if wanted.scale < kind.scale:
        value = rounded(value, kind.scale, wanted.scale)
    return value.cast(wanted, strict=strict)
