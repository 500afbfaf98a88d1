"""The draft of a session's queries on its way through the rules."""

from __future__ import annotations

from anabranch import Session
from anabranch.plan.compile import RULES
from anabranch.plan.draft import Aims, Draft, draft


def drafts(session: Session, name: str) -> tuple[Draft, Draft]:
    """The draft right before and right after the rule of this name."""
    choice = session.partitioning()
    aims = Aims(choice, session._choosing.given(session._streams), session.settings.central)
    made = draft(session._nodes())
    for rule in RULES:
        after = rule(made, aims)
        if rule.__name__ == name:
            return made, after
        made = after
    raise AssertionError(f"There is no rule '{name}'.")
