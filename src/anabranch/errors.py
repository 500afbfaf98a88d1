"""Every error a user can meet: one root, one class per stage.

A message says what was expected, what came, where, and what to do. Errors cross process borders
(a split task meets a broken file, the driver raises it), so each is rebuilt from its plain fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AnabranchError(Exception):
    """The root of all errors raised on purpose by Anabranch."""


class LanguageError(AnabranchError):
    """A query that cannot be understood: unknown column, wrong type, unsupported form."""


class PlanningError(AnabranchError):
    """A query set that is understood but cannot be run as asked."""


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


def suggest(word: str, known: Iterable[str]) -> str:
    """A sentence that names what exists, nearest first: ` Did you mean 'time'? Existing: …`."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"{hint} Existing: {', '.join(names) if names else '(none)'}."
