"""Deferred sync in any order of events: what the writer takes for confirmed is durable wherever it should be (W11)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write import LedgerWriter
from bookkeeper.ledger.write.effects import CloseMetadata, Confirm, Effect, ForceDone, Release, SendAdds, SendForce
from bookkeeper.ledger.write.force_rounds import ForceRounds
from bookkeeper.ledger.write.writer_end import WriterState
from tests.bookkeeper.ledger.test_metadata import bookies
from tests.examples_of import examples

Message = tuple[str, int]
"""("add", entry) or ("force", number), and their answers; ("refused", entry)."""


class Bookie:
    """Works on what it was sent in any order, and its answers arrive in any order."""

    def __init__(self) -> None:
        self.inbox: list[Message] = []
        self.answers: list[Message] = []
        self.stored: set[int] = set()
        self.durable: set[int] = set()

    def work(self, rng: Random) -> None:
        kind, number = message = self.inbox.pop(rng.randrange(len(self.inbox)))
        if kind == "force":
            self.durable |= self.stored
        elif rng.random() < 0.1:
            message = ("refused", number)
        else:
            self.stored.add(number)
        self.answers.append(message)


class DeferredWorld:
    def __init__(self, rng: Random, spec: QuorumSpec) -> None:
        self.rng = rng
        self.spec = spec
        self.now = 0.0
        members = bookies(" ".join(f"b{i}" for i in range(spec.ensemble_size)))
        config = WriterConfig(deferred_sync=True, add_timeout_ms=10**9, force_timeout_ms=500)
        self.writer = LedgerWriter(LedgerMetadata.create(spec, members), config)
        self.bookies = {member: Bookie() for member in members}
        self.kept_from = 0
        self.targets: dict[int, int] = {}
        """Force -> the highest entry that was acknowledged when it was asked for."""
        self.told = -1
        """The highest entry that a caller was told of."""
        self.closed_at: int | None = None

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendAdds():
                    for entry in self.spec.stripe(effect.position, effect.first, effect.count):
                        assert entry >= self.kept_from, "its packet is gone"
                        self.bookies[effect.bookie].inbox.append(("add", entry))
                case SendForce():
                    self.bookies[effect.bookie].inbox.append(("force", effect.number))
                case Confirm():
                    assert effect.first == self.told + 1
                    self.told += effect.count
                case Release():
                    self.kept_from = max(self.kept_from, effect.upto + 1)
                case ForceDone():
                    self.must_be_durable(self.targets.get(effect.number, -1))
                case CloseMetadata():
                    self.closed_at = effect.last_entry
                    assert self.closed_at == self.writer.progress.last_add_confirmed == self.told
                case _:
                    pass
        self.must_be_durable(self.writer.progress.last_add_confirmed)

    def must_be_durable(self, upto: int) -> None:
        for entry in range(upto + 1):
            for member in self.spec.write_set(entry, self.writer.metadata.last_fragment.ensemble):
                assert entry in self.bookies[member].durable, f"W11: entry {entry} on {member}"

    def step(self) -> None:
        self.now += 0.001
        writer, rng = self.writer, self.rng
        choice = rng.random()
        bookie: BookieId = rng.choice(list(self.bookies))
        it = self.bookies[bookie]
        if choice < 0.15 and writer.error is None:
            self.perform(writer.add([1] * rng.randrange(1, 4), self.now)[1])
        elif choice < 0.25 and writer.error is None:
            acknowledged = writer.progress.last_acknowledged
            number, effects = writer.force(self.now)
            self.targets[number] = max(acknowledged, self.targets.get(number, -1))
            self.perform(effects)
        elif choice < 0.60 and it.inbox:
            it.work(rng)
        elif choice < 0.97 and it.answers:
            kind, number = it.answers.pop(rng.randrange(len(it.answers)))
            if kind == "add":
                self.perform(writer.on_acks(bookie, number, 1, self.now))
            elif kind == "force":
                self.perform(writer.on_forced(bookie, number, self.now))
            else:
                self.perform(writer.send_again(bookie, number, 1, self.kept_from))
        elif choice < 0.975:
            self.now += 0.3
            self.perform(writer.on_tick(self.now))
        elif choice > 0.999:
            self.crash(bookie)

    def crash(self, bookie: BookieId) -> None:
        it = self.bookies[bookie]
        it.stored = set(it.durable)
        it.inbox.clear()
        it.answers.clear()
        self.perform(self.writer.on_bookie_failed(bookie, BookieUnavailableError("lost"), self.now))

    def quiet(self) -> None:
        """Everything that is under way arrives."""
        while any(it.inbox or it.answers for it in self.bookies.values()):
            for bookie, it in self.bookies.items():
                while it.inbox:
                    it.work(self.rng)
                for kind, number in it.answers[:]:
                    it.answers.remove((kind, number))
                    if kind == "add":
                        self.perform(self.writer.on_acks(bookie, number, 1, self.now))
                    elif kind == "force":
                        self.perform(self.writer.on_forced(bookie, number, self.now))
                    else:
                        self.perform(self.writer.send_again(bookie, number, 1, self.kept_from))


SPECS = [(3, 3, 2), (3, 2, 2), (4, 2, 1), (2, 2, 1), (1, 1, 1)]


def live(rng: Random, steps: int = 400) -> DeferredWorld:
    ensemble, write, ack = rng.choice(SPECS)
    world = DeferredWorld(rng, QuorumSpec(ensemble_size=ensemble, write_quorum=write, ack_quorum=ack))
    for _ in range(steps):
        world.step()
    return world


@pytest.mark.rule("W11", "W2", "W3")
@settings(deadline=None, max_examples=examples(100))
@given(st.integers(0, 1 << 32))
def test_whatever_comes_when_what_is_confirmed_is_durable_on_all_who_hold_it(seed: int) -> None:
    world = live(Random(seed))
    if world.writer.state is not WriterState.OPEN:
        return
    world.quiet()
    world.perform(world.writer.close(world.now))
    world.quiet()
    assert world.closed_at == world.told == world.writer.progress.last_add_confirmed


@pytest.mark.rule("W11")
def test_a_force_that_does_not_wait_for_the_acks_of_every_bookie_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: bookies are asked at once, in the hope that they work in order."""

    def hasty(members: Sequence[EnsembleMember], current: Any) -> list[Effect]:
        unasked = [member.bookie for member in members if member.bookie not in current.asked]
        current.asked.update(unasked)
        return [SendForce(bookie, current.number) for bookie in unasked]

    monkeypatch.setattr(ForceRounds, "_ask_ready_bookies", staticmethod(hasty))
    with pytest.raises(AssertionError, match="W11"):
        for seed in range(200):
            live(Random(seed))
