"""What the libraries complain of while a task computes, in our words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from anabranch.errors import RunError
from anabranch.language.complaints import in_words

_TOO_NARROW = re.compile(
    r"conversion from `decimal\[\d+,\d+\]` to `decimal\[(\d+),(\d+)\]` failed .*?: \[([^\],]*)"
)


@contextlib.contextmanager
def computing(what: str) -> Iterator[None]:
    """Turns errors of the libraries into ours, which travel to the driver as data."""
    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException) as error:
        narrow = _TOO_NARROW.search(" ".join(str(error).split()))
        if narrow:
            digits, scale, value = narrow.groups()
            raise RunError(
                f"{what}: {value} has more digits than DECIMAL({digits}, {scale}), the type that it is "
                "computed in, as in DuckDB, or cast to. CAST what it is computed from to "
                f"DECIMAL(38, {scale}); TRY_CAST gives NULL for what does not fit."
            ) from error
        reason, hint = " ".join(in_words(error).split()), ""
        if "conversion from" in reason:
            hint = " TRY_CAST(x AS type), in Python x.try_cast(type), gives NULL for what does not fit."
        raise RunError(f"{what} could not be computed: {reason}{hint}") from error
