"""One ledger against the world: a writer, clients that recover, bookies that stop, messages that are lost.

Three machines with more and more of the world in them, and many seeded walks. The promises are checked by
:mod:`tests.bookkeeper.ledger.world` after every step; each machine ends with liveness: once nothing fails any more,
everything that was begun must end.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bookkeeper.errors import AddTimeoutError
from bookkeeper.ledger.recovery.recovery import RecoveryState
from tests.bookkeeper.ledger.walks import SHAPES, spec_of, walk
from tests.bookkeeper.ledger.world import NEVER_MS, World
from tests.examples_of import examples

ANY = st.integers(0, 50)


class _Ledger(RuleBasedStateMachine):
    """What all three have in common: messages that arrive in any order or not at all."""

    world: World

    @initialize(shape=st.sampled_from(SHAPES), spares=st.integers(0, 2))
    def begin(self, shape: tuple[int, int, int], spares: int) -> None:
        self.world = World(spec_of(shape), spares, add_timeout_ms=NEVER_MS)

    @rule(count=st.integers(1, 4))
    def add(self, count: int) -> None:
        self.world.writer.add(count)

    @precondition(lambda self: self.world.messages)
    @rule(index=ANY)
    def deliver(self, index: int) -> None:
        self.world.deliver(index)

    @precondition(lambda self: len(self.world.messages) > 1)
    @rule(count=st.integers(2, 12), index=ANY)
    def deliver_some(self, count: int, index: int) -> None:
        for _ in range(min(count, len(self.world.messages))):
            self.world.deliver(index)

    @precondition(lambda self: self.world.messages)
    @rule(index=ANY)
    def lose(self, index: int) -> None:
        self.world.lose(index)

    @precondition(lambda self: self.world.effects)
    @rule(index=ANY)
    def store_step(self, index: int) -> None:
        self.world.store_step(index)

    @rule(index=ANY)
    def a_bookie_stops_or_starts(self, index: int) -> None:
        self.world.flip(index)

    @rule(seconds=st.sampled_from([0.05, 0.3, 0.6, 1.1]))
    def tick(self, seconds: float) -> None:
        self.world.tick(seconds)

    @precondition(lambda self: self.world.writer.lost)
    @rule(index=ANY)
    def a_bookie_returns(self, index: int) -> None:
        self.world.writer.bookie_returns(index)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle()


class WriterAgainstTheWorld(_Ledger):
    """W1-W6, W10b, W13-W15: failures, ensemble changes, no spare, returning and hung bookies; nobody recovers."""

    @invariant()
    def w2_confirmed_in_order_and_once(self) -> None:
        if hasattr(self, "world"):
            writer = self.world.writer
            assert writer.confirmed == list(range(writer.machine.progress.last_add_confirmed + 1))
            assert writer.failed == []

    @invariant()
    def w12_pending_bytes_are_counted(self) -> None:
        if hasattr(self, "world"):
            writer = self.world.writer
            done = writer.machine.progress.last_add_confirmed + 1
            assert writer.machine.progress.pending_bytes == sum(writer.sizes[done:])
            assert writer.machine.confirmed_length == sum(writer.sizes[:done])

    @invariant()
    def w8_packets_are_kept_while_they_may_be_sent(self) -> None:
        if hasattr(self, "world"):
            writer = self.world.writer
            assert set(writer.packets) == set(range(writer.machine.progress.last_add_confirmed + 1, len(writer.sizes)))

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "world"):
            assert self.world.writer.confirmed == list(range(len(self.world.writer.sizes)))


class RecoveryAgainstTheWorld(_Ledger):
    """R1-R12, R14: the writer stops somewhere, and one client recovers what it left."""

    @precondition(lambda self: not self.world.recoveries)
    @rule()
    def the_writer_stops(self) -> None:
        self.world.writer.alive = False
        self.world.recover()

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "world") and self.world.recoveries:
            shell = self.world.recoveries[0]
            assert self.world.stored.is_closed or shell.error is not None


class TheWholeOfOneLedger(_Ledger):
    """R8, R10, R11, R13, R15: a writer that is not dead, several who recover, a reader who looks."""

    @precondition(lambda self: len(self.world.recoveries) < 3)
    @rule()
    def another_recovers(self) -> None:
        self.world.recover()

    @rule(index=ANY)
    def a_reader_looks(self, index: int) -> None:
        self.world.look(index)

    @rule()
    def the_writer_closes(self) -> None:
        self.world.writer.close()

    @precondition(lambda self: self.world.recoveries)
    @rule(index=ANY)
    def one_who_recovers_stops(self, index: int) -> None:
        self.world.recoveries[index % len(self.world.recoveries)].alive = False


_SETTINGS = settings(
    max_examples=examples(40),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

TestWriterAgainstTheWorld = pytest.mark.rule("W1", "W2", "W3", "W4", "W5", "W8", "W10b", "W12", "W13", "W15", "V1")(
    WriterAgainstTheWorld.TestCase
)
TestRecoveryAgainstTheWorld = pytest.mark.rule("R1", "R2", "R4", "R5", "R6", "R7", "R9", "R12", "R14", "V2")(
    RecoveryAgainstTheWorld.TestCase
)
TestTheWholeOfOneLedger = pytest.mark.rule("R3", "R8", "R10", "R11", "R13", "R15", "L2", "L3", "L6", "M2", "W6", "W9")(
    TheWholeOfOneLedger.TestCase
)
for _machine in (WriterAgainstTheWorld, RecoveryAgainstTheWorld, TheWholeOfOneLedger):
    _machine.TestCase.settings = _SETTINGS


@pytest.mark.rule("R3", "R5", "R8", "R11", "R12", "R15", "W1", "W4", "V1", "V2", "L2", "L6")
@pytest.mark.parametrize("block", range(8))
def test_seeded_walks_lose_nothing_and_end(block: int) -> None:
    closed = confirmed = recovered = 0
    for seed in range(block * 60, block * 60 + 60):
        world = walk(seed)
        closed += world.stored.is_closed
        confirmed += len(world.writer.confirmed)
        recovered += sum(shell.result is not None for shell in world.recoveries)
    assert closed >= 20, "walks that end nowhere prove nothing"
    assert recovered >= 20
    assert confirmed >= 100


@pytest.mark.rule("R3", "R11")
def test_an_add_that_arrives_after_the_answer_of_a_recovery_read_is_refused() -> None:
    """The longest of the short stories. b1 stored the entry, and is away; b2 and b3 prove it absent. An add that
    reaches b3 only now must not be acknowledged: with b1's it would make an ack quorum for what is cut off.
    """
    world = World(spec_of((3, 3, 2)), spares=0, add_timeout_ms=NEVER_MS)
    world.writer.add(1)
    deliver(world, "add 0 to b1")  # stored; its answer stays on the way
    world.recover()
    while world.effects:
        world.store_step(0)
    for text in ("fence b1", "fence b1", "fence b2", "fence b2"):
        deliver(world, text)
    world.flip(0)
    deliver(world, "read 0 from b1")
    for text in ("read 0 from b2", "read 0 from b2", "read 0 from b3", "read 0 from b3"):
        deliver(world, text)
    assert world.recoveries[0].machine.state is RecoveryState.CLOSING
    deliver(world, "add 0 to b3")
    deliver(world, "add 0 to b3")
    deliver(world, "add 0 to b1")
    while world.effects:
        world.store_step(0)
    assert world.stored.last_entry == -1
    assert world.writer.confirmed == []


def deliver(world: World, text: str) -> None:
    """The message that says so arrives."""
    [index] = [i for i, message in enumerate(world.messages) if message.text.endswith(text)]
    world.deliver(index)


@pytest.mark.rule("V1", "W6")
def test_an_expired_deadline_is_the_only_end_without_a_reason_from_outside() -> None:
    for seed in range(60):
        writer = walk(seed).writer
        if isinstance(writer.machine.error, AddTimeoutError):
            assert writer.machine.config.add_timeout_ms < NEVER_MS
