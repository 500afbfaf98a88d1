"""Scalar functions that users bring: Arrow columns in, an Arrow column out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from anabranch.errors import LanguageError, RunError
from anabranch.language.kinds import type_named


class UserFunction(str):
    """The name of a function, which brings the function along wherever expressions go."""

    body: Callable[..., Any]
    arguments: tuple[str, ...]
    result: str
    check: bool

    def __new__(
        cls, name: str, body: Callable[..., Any], arguments: Sequence[str], result: str, check: bool
    ) -> UserFunction:
        made = super().__new__(cls, name)
        made.body, made.result, made.check = body, result, check
        made.arguments = tuple(arguments)
        return made

    def __reduce__(self) -> Any:
        return UserFunction, (str(self), self.body, self.arguments, self.result, self.check)

    @property
    def kind(self) -> pl.DataType:
        """The type of its values."""
        return _kind(self.result)

    @property
    def wanted(self) -> list[pl.DataType]:
        """The types of its arguments."""
        return [_kind(name) for name in self.arguments]

    def applied(self, parts: Sequence[pl.Expr]) -> pl.Expr:
        """The function over columns of its types."""
        return pl.map_batches(
            list(parts), self._compute, return_dtype=self.kind, is_elementwise=True
        )

    def _compute(self, columns: Sequence[pl.Series]) -> pl.Series:
        rows = max(len(column) for column in columns)
        arrays = [
            _plain(column if len(column) == rows else column.new_from_index(0, rows))
            for column in columns
        ]
        values = self._called(arrays, rows)
        if self.check and not values.equals(self._called(arrays, rows)):
            raise RunError(
                f"The function '{self}' gave other values for the same arguments when it was called again, "
                "so results could differ when an epoch is run again. Make it depend on its arguments alone."
            )
        return pl.Series("", values)

    def _called(self, arrays: Sequence[pa.Array], rows: int) -> pa.Array:
        try:
            values = self.body(*arrays)
        except Exception as error:
            raise RunError(f"The function '{self}' failed: {error!r}.") from error
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array) or len(values) != rows:
            length = f" of length {len(values)}" if hasattr(values, "__len__") else ""
            raise RunError(
                f"The function '{self}' must return an Arrow array of {rows} values, one for each row; it "
                f"returned a {type(values).__name__}{length}."
            )
        wanted = pl.Series("", [], self.kind).to_arrow().type
        try:
            return values.cast(wanted)
        except pa.ArrowInvalid as error:
            raise RunError(
                f"The function '{self}' is declared to return {self.result}, but it returned {values.type}."
            ) from error


def _plain(column: pl.Series) -> pa.Array:
    """A column as Arrow's functions expect it: texts and bytes with the usual offsets."""
    array = column.to_arrow()
    usual = {
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
    }
    return array.cast(usual.get(array.type, array.type))


def _kind(name: str) -> pl.DataType:
    kind = type_named(name)
    assert kind is not None
    return kind


def user_function(
    name: str, body: Callable[..., Any], arguments: Sequence[str], result: str, check: bool
) -> UserFunction:
    """A function with its types, checked."""
    if not callable(body):
        raise LanguageError(f"Function '{name}': expected a function, got {body!r}.")
    if not name.isidentifier() or name.startswith("__"):
        raise LanguageError(f"Function '{name}' needs a name of letters, digits and '_'.")
    if not arguments:
        raise LanguageError(
            f"Function '{name}' needs one argument or more: what it gives follows from them."
        )
    for kind in (*arguments, result):
        if type_named(kind) is None:
            raise LanguageError(f"Function '{name}': there is no type '{kind}'.")
    return UserFunction(name, body, arguments, result, check)
