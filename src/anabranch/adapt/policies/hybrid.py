"""Flux's hybrid policy (F7): by memory while a site is short of it, else by load where there is room."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.adapt.actions import Move
from anabranch.adapt.policies.even import propose_even
from anabranch.adapt.policies.load import propose_load
from anabranch.adapt.policies.memory import propose_memory
from anabranch.adapt.tuning import Tuning
from anabranch.adapt.view import View


def propose_hybrid(view: View, tuning: Tuning) -> Iterator[Move]:
    """What one of the two would do: by load also where no move could help a site's memory."""
    short = view.sites.resident + view.sites.spilled > view.sites.memory
    pressed = view.partitions.aside.any() or (short & view.sites.alive).any()
    by_memory = list(propose_memory(view, tuning)) if pressed else []
    if by_memory:
        yield from by_memory
    else:
        load = propose_even if tuning.itself else propose_load
        yield from load(view, tuning, room=True)
