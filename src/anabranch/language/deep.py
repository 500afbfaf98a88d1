"""Work on what is nested deeply: on a stack of its own, deep enough for all that may be written.

The SQL parser goes down a text by calling itself, some twenty calls for each pair of parentheses, and so do
the planner's walks over a graph: Python's usual limit of 1,000 calls is reached at about forty. The limit is
only about the stack of the thread, so what reaches it is done again in a thread with a large one.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from anabranch.errors import AnabranchError, LanguageError

T = TypeVar("T")

MOST_NESTED = 1_000
"""Parentheses within each other that a text may have."""
CALLS = 150_000
"""Calls within each other on the deep stack: above what that many parentheses need."""
LARGE = 5_000
"""Letters of a text that is likely to need the deep stack."""
STACK_BYTES = 1 << 29
"""Memory is taken only as far as the stack is used."""

_lock = threading.Lock()
_users = 0
_usual = sys.getrecursionlimit()
_here = threading.local()


def deeply(
    work: Callable[[], T], what: str, error: type[AnabranchError] = LanguageError, size: int = 0
) -> T:
    """What `work` returns, on a deep stack if it needs one; it must not mind to be begun twice.

    `size` is that of the text it reads, if any: a large one is not tried on the usual stack first.
    """
    try:
        if size < LARGE or getattr(_here, "deep", False):
            return work()
    except RecursionError as fault:
        if getattr(_here, "deep", False):
            raise _too_deep(what, error) from fault
    outcome: list[T] = []
    faults: list[BaseException] = []

    def run() -> None:
        _here.deep = True
        try:
            outcome.append(_without_collecting(work))
        except RecursionError:
            faults.append(_too_deep(what, error))
        except BaseException as fault:
            faults.append(fault)

    _with_stack(run)
    if faults:
        raise faults[0]
    return outcome[0]


def _without_collecting(work: Callable[[], T]) -> T:
    """What `work` returns; nobody looks for garbage meanwhile, for all of a large tree is in use."""
    if not gc.isenabled():
        return work()
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


def _too_deep(what: str, error: type[AnabranchError]) -> AnabranchError:
    return error(
        f"{what} is nested too deeply: expected at most {MOST_NESTED:,} parentheses, calls or sub-queries "
        "within each other. Compute some of it in a query of its own and read that."
    )


def _with_stack(run: Callable[[], None]) -> None:
    global _users, _usual
    with _lock:
        if _users == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, CALLS))
        _users += 1
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="anabranch-deep", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    try:
        thread.join()
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_usual)
