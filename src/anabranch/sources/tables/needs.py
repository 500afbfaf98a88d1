"""Packages that only some sinks and streams need: a missing one is told with the extra it comes with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anabranch.errors import SettingsError


@contextlib.contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Turns a package that is not installed into a SettingsError that names the extra it comes with."""
    try:
        yield
    except ImportError as error:
        raise SettingsError(
            f"{what} needs a package that is not there ({error}): pip install 'anabranch[{extra}]'."
        ) from error
