"""The movement protocol by itself: random events, crashes in between, and what must hold after each of them.

Every partition has one owner at every moment, never two and never none. Where rows can be held back, a new
site begins only when it has fetched all that the old one wrote. Whatever happens, moves come to an end.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from anabranch.adapt.actions import Move
from anabranch.adapt.protocols.moving import (
    FETCHING,
    PAUSED,
    QUEUED,
    Abandon,
    EpochCommitted,
    Fetch,
    Install,
    Instruction,
    MoveAccepted,
    MoveProtocol,
    Moving,
    Pause,
    Queue,
    SiteLost,
    StateArrived,
    TurnCame,
)
from anabranch.errors import RunError
from anabranch.routing.partition_map import even_map

SITES = 4
Subject = tuple[str, int]


class Movement(RuleBasedStateMachine):
    """A driver that carries out what the protocol tells it, and remembers what really is where."""

    @initialize(pausing=st.booleans(), fetch_first=st.booleans(), in_turn=st.booleans())
    def begin(self, pausing: bool, fetch_first: bool, in_turn: bool) -> None:
        self.protocol = MoveProtocol(pausing, fetch_first=fetch_first, in_turn=in_turn)
        self.maps = {"flows": even_map(6, SITES, 24), "pairs": even_map(5, SITES, 5)}
        self.owners = {
            (exchange, start): {site}
            for exchange, known in self.maps.items()
            for start, site in zip(known.starts, known.sites, strict=True)
        }
        self.epoch = 0
        self.alive = set(range(SITES))
        self.written = dict.fromkeys(self.owners, -1)
        self.asked: set[Subject] = set()
        """What is to be fetched, by the end of the next epoch at the latest."""
        self.fetched: dict[Subject, int] = {}
        """The epoch up to which a new site has the state of a partition."""
        self.paused: set[Subject] = set()
        self.queued: set[Subject] = set()
        self.held: dict[Subject, int] = {}

    def owner(self, subject: Subject) -> int:
        known = self.maps[subject[0]]
        return known.sites[known.partition_at(subject[1])]

    # -- what the driver does -----------------------------------------------------------------------

    def carry_out(self, instructions: list[Instruction], near: bool = False) -> None:
        for order in instructions:
            subject = order.move.subject
            match order:
                case Queue():
                    self.queued.add(subject)
                case Fetch():
                    self.asked.add(subject)
                case Pause():
                    self.paused.add(subject)
                case Install(move=move):
                    self.install(move, near)
                case Abandon():
                    self.let_go(subject)

    def install(self, move: Move, near: bool) -> None:
        subject = move.subject
        assert self.owner(subject) == move.source, "it is taken from a site that does not have it"
        if not near and self.protocol.pausing and move.source in self.alive:
            assert self.fetched.get(subject, -1) >= self.written[subject], "installed without drain"
        assert move.target in self.alive, "given to a site that is gone"
        self.owners[subject].remove(move.source)
        self.owners[subject].add(move.target)
        self.maps[subject[0]] = self.maps[subject[0]].moved({subject[1]: move.target})
        self.let_go(subject)

    def let_go(self, subject: Subject) -> None:
        self.paused.discard(subject)
        self.queued.discard(subject)
        self.held.pop(subject, None)
        self.fetched.pop(subject, None)
        self.asked.discard(subject)

    # -- what happens -------------------------------------------------------------------------------

    @rule(data=st.data(), far=st.booleans())
    def accept(self, data: Any, far: bool) -> None:
        subject = data.draw(st.sampled_from(sorted(self.owners)))
        move = Move(
            *subject, "test", self.owner(subject), data.draw(st.sampled_from(sorted(self.alive)))
        )
        if subject in self.protocol.moving:
            before = dict(self.protocol.moving)
            with pytest.raises(RunError, match="is on its way to site"):
                self.protocol.handle(MoveAccepted(move, self.epoch, far))
            assert self.protocol.moving == before
        elif move.source != move.target:
            orders = self.protocol.handle(MoveAccepted(move, self.epoch, far))
            self.carry_out(orders, near=not far)

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def take_turn(self, data: Any) -> None:
        subject = data.draw(st.sampled_from(sorted(self.queued)))
        self.queued.remove(subject)
        orders = self.protocol.handle(TurnCame(subject, self.epoch))
        assert orders, "it begins"
        self.carry_out(orders)
        assert self.protocol.handle(TurnCame(subject, self.epoch)) == [], "it has begun"

    @rule(data=st.data())
    def arrive(self, data: Any) -> None:
        """The state of one partition has arrived, or comes too late."""
        subject = data.draw(st.sampled_from(sorted(self.owners)))
        if subject in self.asked:
            self.asked.remove(subject)
            self.fetched[subject] = self.epoch
            self.carry_out(self.protocol.handle(StateArrived(subject)))
        elif subject not in self.protocol.moving:
            assert self.protocol.handle(StateArrived(subject)) == []

    @rule(busy=st.integers(0, 2**11 - 1))
    def commit(self, busy: int) -> None:
        """An epoch in which some partitions get rows: those that are paused keep them for later."""
        for subject in self.asked:
            self.fetched[subject] = self.epoch
        self.asked.clear()
        self.epoch += 1
        for number, subject in enumerate(self.owners):
            if busy >> number & 1:
                if subject in self.paused:
                    self.held[subject] = self.held.get(subject, 0) + 1
                else:
                    self.written[subject] = self.epoch
        self.carry_out(self.protocol.handle(EpochCommitted(self.epoch)))

    @precondition(lambda self: len(self.alive) == SITES)
    @rule(data=st.data())
    def lose(self, data: Any) -> None:
        site = data.draw(st.sampled_from(sorted(self.alive)))
        self.alive.remove(site)
        self.carry_out(self.protocol.handle(SiteLost(site)))
        for subject in self.owners:
            if self.owner(subject) == site:
                move = Move(*subject, "gone", site, min(self.alive))
                assert subject not in self.protocol.moving
                orders = self.protocol.handle(MoveAccepted(move, self.epoch, far=False))
                self.carry_out(orders, near=True)

    @precondition(lambda self: len(self.alive) < SITES)
    @rule()
    def come_back(self) -> None:
        self.alive = set(range(SITES))

    @rule()
    def crash(self) -> None:
        """Only what the manifest has is left: the moves under way, and rows that were held back."""
        stored = copy.deepcopy(self.protocol.moving)
        self.protocol = replace(self.protocol, moving=stored)
        self.fetched, self.paused, self.asked, self.queued = {}, set(), set(), set()
        self.carry_out(self.protocol.resume())

    # -- what always holds --------------------------------------------------------------------------

    @invariant()
    def every_partition_has_one_owner(self) -> None:
        for subject, owners in self.owners.items():
            assert owners == {self.owner(subject)}

    @invariant()
    def the_protocol_is_consistent(self) -> None:
        self.protocol.validate(self.maps, self.paused)

    @invariant()
    def only_what_is_paused_waits(self) -> None:
        assert {*self.held} <= self.paused
        assert self.paused <= {*self.protocol.moving}

    @invariant()
    def moves_do_not_last(self) -> None:
        # Fetched in one epoch, paused in the next; a crash begins nothing anew
        begun = [known for known in self.protocol.moving.values() if known.phase != QUEUED]
        assert all(self.epoch - known.since < 2 for known in begun)

    @invariant()
    def what_is_queued_waits_for_its_turn(self) -> None:
        moving = self.protocol.moving.items()
        assert self.queued == {subject for subject, known in moving if known.phase == QUEUED}

    def teardown(self) -> None:
        if hasattr(self, "protocol"):
            for subject in sorted(self.queued):
                self.queued.remove(subject)
                self.carry_out(self.protocol.handle(TurnCame(subject, self.epoch)))
            self.commit(0)
            self.commit(0)
            assert not self.protocol.moving
            assert not self.paused


Movement.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestMovement = Movement.TestCase


MOVE = Move("flows", 4, "test", source=0, target=1)
MAPS = {"flows": even_map(6, 2, 24)}


def under_way(phase: str, move: Move = MOVE) -> MoveProtocol:
    return MoveProtocol(moving={move.subject: Moving(move, phase, since=3)})


def test_validate_finds_what_is_wrong() -> None:
    under_way(FETCHING).validate(MAPS, [])
    under_way(PAUSED).validate(MAPS, [MOVE.subject])
    with pytest.raises(RunError, match="cut away"):
        under_way(FETCHING, Move("flows", 5, "", source=0, target=1)).validate(MAPS, [])
    with pytest.raises(RunError, match="from site 0 but is on site 1"):
        under_way(FETCHING).validate({"flows": MAPS["flows"].moved({4: 1})}, [])
    with pytest.raises(RunError, match="is paused, but its rows do not wait"):
        under_way(PAUSED).validate(MAPS, [])


def test_a_near_move_is_installed_at_once() -> None:
    protocol = MoveProtocol()
    assert protocol.handle(MoveAccepted(MOVE, 3, far=False)) == [Install(MOVE, 3)]
    assert not protocol.moving


def test_a_far_move_takes_two_epochs() -> None:
    protocol = MoveProtocol()
    assert protocol.handle(MoveAccepted(MOVE, 3, far=True)) == [Fetch(MOVE)]
    assert protocol.handle(EpochCommitted(4)) == [Pause(MOVE), Fetch(MOVE)]
    assert protocol.handle(EpochCommitted(5)) == [Install(MOVE, 3)]


def test_moves_go_on_one_by_one_when_their_state_arrives() -> None:
    protocol, other = MoveProtocol(), Move("flows", 8, "test", source=0, target=1)
    for move in (MOVE, other):
        protocol.handle(MoveAccepted(move, 3, far=True))
    assert protocol.handle(StateArrived(MOVE.subject)) == [Pause(MOVE), Fetch(MOVE)]
    assert protocol.handle(StateArrived(MOVE.subject)) == [Install(MOVE, 3)]
    assert protocol.handle(StateArrived(MOVE.subject)) == [], "nobody waits for it"
    assert protocol.moving == {other.subject: Moving(other, FETCHING, 3)}


def test_in_flux_own_order_a_partition_is_paused_first() -> None:
    protocol = MoveProtocol(fetch_first=False)
    assert protocol.handle(MoveAccepted(MOVE, 3, far=True)) == [Pause(MOVE), Fetch(MOVE)]
    assert protocol.handle(StateArrived(MOVE.subject)) == [Install(MOVE, 3)]
    unable = MoveProtocol(pausing=False, fetch_first=False)
    assert unable.handle(MoveAccepted(MOVE, 3, far=True)) == [Fetch(MOVE)]
    assert unable.handle(StateArrived(MOVE.subject)) == [Install(MOVE, 3)]


def test_a_lost_site_ends_its_moves() -> None:
    lost_target = under_way(PAUSED).handle(SiteLost(1))
    assert lost_target == [Abandon(MOVE, "site 1 is gone")]
    assert under_way(PAUSED).handle(SiteLost(0)) == [Install(MOVE, 3)]
    assert under_way(PAUSED).handle(SiteLost(7)) == []
