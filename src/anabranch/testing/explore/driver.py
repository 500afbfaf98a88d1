"""A driver on paper: the calls that a run makes of its ledger, each stopped before every operation.

Where a driver is, is told by the ledger it had when its present call began and the answers it has got since:
to go on, the call is made again with these answers, up to the operation that has none yet. So the ledger is
the real one, and a driver's state can be kept, compared and gone on from as often as one likes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from anabranch.errors import StateError
from anabranch.state.entry import encode
from anabranch.state.ledger import Ledger
from anabranch.state.line import read_line, read_newest
from anabranch.state.manifest import ExchangeRecord, Manifest, StreamRecord, SubqueryRecord
from anabranch.state.segment import NEVER, SegmentRef
from anabranch.state.shelf import ShelfChange
from anabranch.testing.explore.explorer import Broken
from anabranch.testing.explore.paper_place import Asked, PaperPlace, Reply, still

AT_REST = ("done", "stopped")
TAKEN_OVER = "has taken over the checkpoint"


@dataclass(frozen=True, eq=False)
class Driver:
    """A run, or someone who only reads, as far as it has come. Equal ones are the same object."""

    who: str
    keep: int
    epochs: int
    """How many it commits from one start."""
    phase: str = "latest"
    start: int = 1
    committed: int = 0
    """Epochs since its start."""
    ledger: Ledger | None = None
    """As it was when the present call began."""
    answers: tuple[Reply, ...] = ()
    """What it has got since."""
    asked: Asked | None = None
    """The operation it is about to do."""
    stopped: str = ""
    """Why it has stopped."""
    key: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def token(self) -> str:
        return f"{self.who}{self.start}"

    @property
    def begun(self) -> bool:
        return self.start > 1 or self.phase != "latest" or bool(self.answers)

    @property
    def last(self) -> Manifest | None:
        """The entry it stands on."""
        return None if self.ledger is None else self.ledger._last


class _Unanswered(BaseException):
    """Nobody has answered this operation yet. No Exception: the product must not take it for an error."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(str(asked))
        self.asked = asked


def gone_on(driver: Driver) -> Driver:
    """A driver that has got an answer, or begins: up to its next operation, or to its end."""
    while driver.phase not in AT_REST:
        ledger = _ledger(driver)
        try:
            _CALLS[driver.phase](driver, ledger)
        except _Unanswered as unanswered:
            return _told(replace(driver, asked=unanswered.asked))
        except (StateError, OSError) as error:
            driver = _failed(driver, error)
            continue
        except Exception as error:
            raise Broken(f"{driver.who} fails in '{driver.phase}' with {error!r}") from error
        driver = _next(replace(driver, ledger=ledger, answers=()))
    return _told(replace(driver, asked=None))


def started_again(driver: Driver) -> Driver:
    """A driver that has crashed, or ended, at its next start."""
    again = Driver(driver.who, driver.keep, driver.epochs, start=driver.start + 1)
    return gone_on(again)


def disturbed(driver: Driver) -> Driver:
    """A driver whose tasks have failed: it throws away what they have left, and stops."""
    return gone_on(replace(driver, phase="discard", answers=()))


def _told(driver: Driver) -> Driver:
    ledger = None if driver.ledger is None else _plain(driver.ledger)
    own = (driver.who, driver.start, driver.phase, driver.committed, driver.stopped)
    return replace(driver, key=(*own, ledger, driver.answers, driver.asked))


def _plain(ledger: Ledger) -> tuple[Any, ...]:
    """All that a ledger knows, as a value."""
    values: list[Any] = []
    for name, value in vars(ledger).items():
        if isinstance(value, Manifest):
            value = encode(value)
        elif isinstance(value, dict):
            value = tuple((serial, tuple(sorted(files))) for serial, files in value.items())
        elif isinstance(value, list):
            value = tuple(value)
        if name != "_place":
            values.append(value)
    return tuple(values)


def _ledger(driver: Driver) -> Ledger:
    """The ledger that the present call began with, on a place that answers what is known."""
    left = iter(driver.answers)

    def ask(asked: Asked) -> Reply:
        answer = next(left, None)
        if answer is None:
            raise _Unanswered(asked)
        return answer

    place = PaperPlace(ask=ask)
    if driver.ledger is None:
        ledger = Ledger(place, fsync=False, keep=driver.keep)
        ledger._token, ledger._holder = driver.token, driver.who
        return ledger
    ledger = copy.copy(driver.ledger)
    for name, value in vars(ledger).items():
        if isinstance(value, list | dict):
            setattr(ledger, name, copy.copy(value))
    ledger._place = place
    return ledger


def _failed(driver: Driver, error: Exception) -> Driver:
    """A driver whose call has failed: some may, because others have come first."""
    reason = str(error)
    if driver.phase == "write":
        return replace(driver, phase="discard", answers=())
    unheard = any(answer.error is StateError for answer in driver.answers)
    fenced = TAKEN_OVER in reason and driver.phase in ("claim", "commit", "clear", "first clear")
    if not fenced and not unheard:
        raise Broken(f"{driver.who} cannot go on in '{driver.phase}': {reason}") from error
    why = "another run has taken over" if fenced else "it was not told whether its entry is there"
    return replace(driver, phase="stopped", stopped=f"{driver.phase}: {why}", answers=())


def _next(driver: Driver) -> Driver:
    order = _READING if driver.who == "reader" else _RUNNING
    if driver.phase == "discard":
        return replace(driver, phase="stopped", stopped="its tasks failed")
    if driver.phase == "commit":
        driver = replace(driver, committed=driver.committed + 1)
    if driver.phase == "clear" and driver.committed < driver.epochs:
        return replace(driver, phase="write")
    return replace(driver, phase=order[order.index(driver.phase) + 1])


# -- what a run does, call by call ------------------------------------------------------------------


def _claim(driver: Driver, ledger: Ledger) -> None:
    before = ledger._last or _first()
    ledger.claim(_with_history(before, driver.token))


def _write(driver: Driver, ledger: Ledger) -> None:
    with ledger._place.writing(segment_name(driver, ledger), False):
        pass


def _commit(driver: Driver, ledger: Ledger) -> None:
    before = ledger._last
    assert before is not None
    record = before.subqueries["sums"]
    # Every epoch merges what there was into what it writes
    change = ShelfChange(
        [(ref.file, ref.batch) for ref in record.shelf],
        [_segment(segment_name(driver, ledger), before.epoch + 1)],
    )
    after = msgspec.structs.replace(
        _with_history(before, f"{driver.token}:{before.epoch + 1}"),
        epoch=before.epoch + 1,
        attempt=driver.token,
        subqueries={"sums": msgspec.structs.replace(record, shelf=record.shelf.after(change))},
    )
    ledger.commit(after, {"sums": change})


def _publish(driver: Driver, ledger: Ledger) -> None:
    last = ledger._last
    if last is not None and last.epoch >= 0:
        # Whoever has committed or taken over does so, again and again to the same effect
        ledger._place.put(result_name(last.epoch, last.attempt), b"", False)


def _read(driver: Driver, ledger: Ledger) -> None:
    for entry in read_line(ledger._place):
        if isinstance(entry.manifest, StateError):
            raise entry.manifest


_RUNNING = (
    "latest", "claim", "finish", "sweep", "first clear", "write", "commit", "publish", "clear", "done",
)  # fmt: skip
_READING = ("latest", "read line", "done")
_CALLS: dict[str, Callable[[Driver, Ledger], Any]] = {
    "latest": lambda driver, ledger: (
        read_newest(ledger._place) if driver.who == "reader" else ledger.latest()
    ),
    "claim": _claim,
    "finish": _publish,
    "sweep": lambda driver, ledger: ledger.sweep(),
    "first clear": lambda driver, ledger: ledger.clear(),
    "write": _write,
    "commit": _commit,
    "publish": _publish,
    "clear": lambda driver, ledger: ledger.clear(),
    "discard": lambda driver, ledger: ledger.sweep(),
    "read line": _read,
}


# -- what it says in its manifests ------------------------------------------------------------------


def _first() -> Manifest:
    return Manifest(
        run_id="run", epoch=-1, sites=1, committed_at=0.0, identity={},
        streams={"rows": StreamRecord(offset=[])}, watermarks={},
        exchanges={"sums": ExchangeRecord(sites=[0])},
        subqueries={"sums": SubqueryRecord(exchange="sums")},
    )  # fmt: skip


def _with_history(manifest: Manifest, deed: str) -> Manifest:
    """The manifest after another deed: a claim or an epoch of some run, which the offset remembers."""
    offset = [*history(manifest), deed]
    return msgspec.structs.replace(manifest, streams={"rows": StreamRecord(offset=offset)})


def history(manifest: Manifest) -> list[str]:
    """All claims and epochs that a manifest builds on, and its own."""
    return list(manifest.streams["rows"].offset)


def segment_name(driver: Driver, ledger: Ledger) -> str:
    assert ledger._last is not None
    return f"state/sums/{ledger._last.epoch + 1:012d}-{driver.token}.arrow"


def result_name(epoch: int, attempt: str) -> str:
    return f"results/{epoch}-{attempt}"


def _segment(file: str, epoch: int) -> SegmentRef:
    return SegmentRef(
        file=file, batch=0, table="sums", tier=0, rows=1, bytes=8, min_due=NEVER, max_due=NEVER,
        live=((0, 1),), along=(1,), born=(epoch, epoch), checksum=0,
    )  # fmt: skip


def read_whole(files: dict[str, bytes]) -> list[Manifest]:
    """The entries of a checkpoint on which nobody works, each whole; Broken if one is not."""
    line = []
    for entry in read_line(still(files)):
        if isinstance(entry.manifest, StateError):
            raise Broken(f"a reader would be told: {entry.manifest}")
        line.append(entry.manifest)
    return line
