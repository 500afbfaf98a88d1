"""EMIT at the end of a query: when its results come, as RisingWave, ksqlDB and Materialize write it."""

from __future__ import annotations

import contextlib

from sqlglot.errors import SqlglotError

from anabranch.language.sql.dialect import Scope, dialect_of

FORMS = {
    ("EMIT", "ON", "WINDOW", "CLOSE"): "final",
    ("EMIT", "FINAL"): "final",
    ("EMIT", "CHANGES"): "update",
    ("EMIT", "UPDATE"): "update",
    ("EMIT", "UPDATES"): "update",
    ("EMIT", "ONCE"): "once",
}
"""What may stand at the end of a query, and the `emit` that it means."""
_FURTHEST = 64
"""Letters from the end in which it is looked for."""


def split_emit(scope: Scope) -> tuple[str, str | None]:
    """The text without its EMIT, and what that means; None if there is none."""
    if "EMIT" not in scope.text[-_FURTHEST:].upper():
        return scope.text, None
    tokens = []
    with contextlib.suppress(SqlglotError):
        tokens = list(dialect_of(scope)().tokenize(scope.text))
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    words = [str(token.text).upper() for token in tokens]
    for form, emit in FORMS.items():
        if tuple(words[-len(form) :]) == form:
            return scope.text[: tokens[-len(form)].start], emit
    if "EMIT" in words[-4:-1]:
        known = ", ".join(" ".join(form) for form in FORMS)
        raise scope.error(
            f"{' '.join(words[words.index('EMIT') :])} is not available: expected one of {known}.",
            tokens[words.index("EMIT")].start,
        )
    return scope.text, None
