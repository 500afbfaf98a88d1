"""Every error a user can meet: one root, one class per stage.

A message says what was expected, what came, where, and what to do. Errors cross process borders
(a split task meets a broken file, the driver raises it), so each is rebuilt from its plain fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Self


class AnabranchError(Exception):
    """The root of all errors raised on purpose by Anabranch."""


class LanguageError(AnabranchError):
    """A query that cannot be understood: unknown column, wrong type, unsupported form."""

    in_sql: str | None = None
    """The message for a query that was written in SQL, if its advice is another one."""

    def or_in_sql(self, message: str) -> Self:
        """The same error, with the message for queries in SQL."""
        self.in_sql = message
        return self


class PlanningError(AnabranchError):
    """A query set that is understood but cannot be run as asked."""

    query: str | None = None
    """The query that it is about, if it is one."""


class SettingsError(AnabranchError):
    """A setting or a specification file with an unknown key or an impossible value."""


class SourceError(AnabranchError):
    """Input that does not fit its stream: missing column, changed type, broken file."""


class StateError(AnabranchError):
    """A checkpoint that cannot be used: other queries, other format, in use, not writable."""


class RunError(AnabranchError):
    """A run that stopped: the cause is in the message and in `__cause__`."""


STAGES: dict[str, type[AnabranchError]] = {
    error.__name__: error
    for error in (LanguageError, PlanningError, SettingsError, SourceError, StateError, RunError)
}


class MissingName(LanguageError, AttributeError):
    """A name that an object does not have."""


def no_attribute(
    what: str, name: str, instead: Mapping[str, str], known: Iterable[str]
) -> MissingName:
    """The error for a name that `what` does not have; `instead` says what to write for those of Spark."""
    if name in instead:
        return MissingName(f"There is no '{name}' here: write {instead[name]}.")
    public = [one for one in known if not one.startswith("_")]
    near = "" if name.startswith("_") else suggest(name, public)
    return MissingName(f"There is no '{name}' of {what}.{near}")


FEW = 12
"""So many names are told all; of more, the nearest."""
LONGEST_SHOWN = 1_000
"""Characters of a text that a message repeats."""


def suggest(word: object, known: Iterable[object]) -> str:
    """A sentence that names what exists: ` Did you mean 'time'? Existing: …`; of many names the nearest."""
    names = sorted(map(str, known))
    # Near words have about the same length; comparing a very long one takes time for nothing
    folded = {name.casefold() for name in names}
    asked = shorten(str(word), 100).casefold()
    alike = difflib.get_close_matches(asked, folded, n=5, cutoff=0.6)
    near = [name for fold in alike for name in names if name.casefold() == fold][:5]
    hint = f" Did you mean '{near[0]}'?" if near else ""
    if len(names) <= FEW:
        return f"{hint} Existing: {', '.join(names) if names else '(none)'}."
    others = f" Also near: {', '.join(near[1:])}." if near[1:] else ""
    if near:
        return f"{hint}{others}"
    return f" Existing: {', '.join(names[:FEW])} and {len(names) - FEW} more."


def nearest(word: object, known: Iterable[object]) -> str:
    """` Did you mean 'close'?`, if a word is much like one of these, which the message has named."""
    told = suggest(word, known).partition("?")
    return told[0] + told[1] if told[1] else ""


def shorten(text: str, most: int = LONGEST_SHOWN) -> str:
    """A text for a message: of a long one, the beginning and how much there is more."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} characters more)"
