"""The twin on a stage: sites are lost and come back, and times are computed from rows, not measured.

A slow site takes no time here, it only reports more of it. So the controller sees the same whenever a seed
is run, and decides the same.

>>> from anabranch.settings import Settings
>>> session = on_stage(Stage((Outage(site=1, begin=2, until=4),)))(2, Settings())
>>> twin = session._transport()
>>> [twin.alive(2) for _ in range(4)]
[[True, True], [True, True], [True, False], [True, False]]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from anabranch.engine.faults import Burden
from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead
from anabranch.engine.report import EpochReport
from anabranch.engine.transport import Transport, Twin
from anabranch.session import Session
from anabranch.settings import Settings

ROW_SECONDS = 0.01
"""What a row takes on a site that nothing weighs on."""
TASK_SECONDS = 0.002
"""What a subquery takes without any rows."""
SessionMaker = Callable[[int, Settings], Session]


@dataclass(frozen=True)
class Outage:
    """A site without a place to run on, from a turn of the run until before another."""

    site: int
    begin: int
    until: int


@dataclass(frozen=True)
class Stage:
    """What happens to the sites of a run; what was felt of it is counted."""

    outages: tuple[Outage, ...] = ()
    fired: Counter[str] = field(default_factory=Counter, compare=False)

    def alive(self, turn: int, sites: int) -> list[bool]:
        gone = {one.site for one in self.outages if one.begin <= turn < one.until}
        return [site not in gone for site in range(sites)]


class StagedTwin(Twin):
    """The twin of one run on a stage."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self._turn = 0

    def alive(self, sites: int) -> list[bool]:
        known = self._stage.alive(self._turn, sites)
        self._turn += 1
        self._stage.fired["lost site"] += not all(known)
        self._stage.fired["no site at all"] += not any(known)
        return known

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        report = super().run(replace(orders, faults=None), ahead)
        burdens = orders.faults.burdens if orders.faults else {}
        for part in report.sites:
            burden = burdens.get(part.site, Burden())
            part.started = part.seconds = 0.0
            for done in part.subqueries.values():
                done.seconds = burden.takes(done.rows_in, TASK_SECONDS + ROW_SECONDS * done.rows_in)
                part.seconds += done.seconds
        levels = {part.level for part in report.sites}
        report.seconds = sum(
            max(part.seconds for part in report.sites if part.level == level) for level in levels
        )
        for burden in burdens.values():
            self._stage.fired["slow site"] += burden.seconds_per_row > 0
            self._stage.fired["loaded site"] += burden.slowdown > 1
            self._stage.fired["stalled site"] += burden.stall > 0
            self._stage.fired["small memory"] += burden.memory is not None
        return report


class _StagedSession(Session):
    stage: Stage

    def _transport(self) -> Transport:
        return StagedTwin(self.stage)


def on_stage(stage: Stage) -> SessionMaker:
    """Makes sessions without Spark whose runs are on this stage."""

    def make(sites: int, settings: Settings) -> Session:
        session = _StagedSession.in_process(sites, settings)
        assert isinstance(session, _StagedSession)
        session.stage = stage
        return session

    return make
