"""A Polars expression together with the type of its values, and constants as such."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from dataclasses import dataclass
from typing import Any

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.decimals import Pointed, constant, decimal_of, fits_decimal, rescaled

_NONE = object()


@dataclass(frozen=True)
class Typed:
    """A Polars expression with the type of its values."""

    given: pl.Expr | None
    """The expression; None for a constant whose expression is made when it is asked for."""
    kind: pl.DataType
    value: Any = _NONE
    """The value, if it is a constant."""
    digits: pl.Decimal | None = None
    """The decimal type of a constant with a point that others were computed to."""

    @functools.cached_property
    def expr(self) -> pl.Expr:
        if self.given is not None:
            return self.given
        # A cast, because a literal with a type goes through a Series, which takes ten times as long
        return pl.lit(self.value).cast(self.kind)

    @property
    def is_constant(self) -> bool:
        return self.value is not _NONE

    @property
    def is_written(self) -> bool:
        """Whether it is a constant with a point, which is a decimal or a float by what it meets."""
        return isinstance(self.value, Pointed)

    @property
    def decimal(self) -> pl.Decimal | None:
        """The decimal type that its values have beside decimals."""
        if isinstance(self.value, float) or not self.kind.is_numeric():
            return None
        return self.digits or decimal_of(self.kind, self.value if self.is_constant else None)

    def as_decimal(self, kind: pl.Decimal | None = None) -> pl.Expr:
        """Its values as decimals, of this type or of their own."""
        own = self.decimal
        assert own is not None
        if self.is_constant and self.value is not None:
            return constant(self.value, kind or own)
        value = self.expr if isinstance(self.kind, pl.Decimal) else self.expr.cast(own)
        return value if kind in (None, own) else rescaled(value, own, kind)

    def as_float(self) -> pl.Expr:
        return self.expr.cast(pl.Float64) if isinstance(self.kind, pl.Decimal) else self.expr


_WHOLE = pl.Int64()


def typed_constant(value: Any) -> Typed:
    if type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise LanguageError(f"{value} does not fit 64 bits.")
        return Typed(None, _WHOLE, value)
    if isinstance(value, Pointed):
        return Typed(pl.lit(float(value)), pl.Float64(), value)
    if isinstance(value, decimal.Decimal):
        plain = decimal.Decimal(f"{value:f}")
        own = decimal_of(pl.Float64(), plain) if fits_decimal(plain) else None
        if own is None:
            raise LanguageError(f"{value} has more digits than a decimal, which has 38 at most.")
        return Typed(constant(plain, own), own, plain)
    return Typed(pl.lit(value), kind_of_constant(value), value)


def kind_of_constant(value: Any) -> pl.DataType:
    match value:
        case None:
            return pl.Null()
        case bool():
            return pl.Boolean()
        case int():
            return pl.Int64()
        case float() | decimal.Decimal():
            return pl.Float64()
        case str():
            return pl.String()
        case bytes():
            return pl.Binary()
        case dt.datetime() | dt.date() | dt.time() | dt.timedelta():
            return pl.select(value=pl.lit(value)).schema["value"]
    raise AssertionError(f"{value!r} is no constant, which Literal does not let in")
