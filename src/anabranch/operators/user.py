"""Aggregates that users bring, as functions over Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import RunError
from anabranch.language.aggregate import UserAggregate
from anabranch.operators.partials import Partial


class User(Partial):
    """A user's aggregate: Arrow arrays in, Arrow arrays out, checked for length and type."""

    columnar = True

    def compute(
        self, rows: pl.DataFrame, ids: np.ndarray, starts: np.ndarray, merge: bool
    ) -> list[pl.Series]:
        user = self._user()
        assert self.argument
        if merge:
            stage, function, values = "merge", user.merge, rows[self.name].to_arrow()
            values = values.cast(user.state_type)
        else:
            stage, function, values = "update", user.update, rows[self.argument].to_arrow()
        empty = pa.repeat(pa.scalar(user.init(), user.state_type), len(starts))
        states = self._call(stage, function, empty, values, pa.array(ids))
        return [self._checked(states, len(starts), user.state_type, stage)]

    def finish_frame(self, rows: pl.DataFrame) -> pl.Series:
        user = self._user()
        states = rows[self.name].to_arrow().cast(user.state_type)
        results = self._call("finish", user.finish, states)
        return self._checked(results, rows.height, user.result_type, "finish")

    def _user(self) -> UserAggregate:
        assert self.call.user
        return self.call.user

    def _call(self, stage: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise RunError(
                f"The {stage} function of the aggregate '{self.call.function}' failed: {error!r}."
            ) from error

    def _checked(self, result: Any, rows: int, kind: pa.DataType, stage: str) -> pl.Series:
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array) or len(result) != rows:
            got = f"{type(result).__name__} of length {len(result) if hasattr(result, '__len__') else '?'}"
            raise RunError(
                f"The {stage} function of the aggregate '{self.call.function}' must return an Arrow "
                f"array of {rows} values, one per group; it returned a {got}."
            )
        return pl.Series(self.name, result.cast(kind))
