"""The names of streams and queries: they become those of folders and files."""

from __future__ import annotations

from anabranch.errors import LanguageError

LONGEST_NAME = 120
"""Bytes of a name. Files of 255 are the most that file systems take, and ours are called after a query, its
subquery, an epoch and more."""


def half_letter(text: str) -> int | None:
    """Where a text has half of a surrogate pair, which no file can hold; None if it is whole."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def require_name(name: object) -> None:
    """Raises LanguageError for what cannot be the name of a stream or a query."""
    if not isinstance(name, str):
        raise LanguageError(f"A name must be a text, not {name!r}.")
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        raise LanguageError(
            f"'{name[:40]}…' cannot be a name: it has {len(name)} letters, and as the name of a folder "
            f"at most {LONGEST_NAME} bytes fit."
        )
    if not name.replace("_", "").replace("-", "").isalnum():
        raise LanguageError(
            f"'{name}' cannot be a name: use letters, digits, '_' and '-' (it becomes a folder)."
        )
