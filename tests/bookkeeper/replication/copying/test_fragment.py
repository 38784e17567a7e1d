"""The machine that brings one copy to another bookie: by hand, and under every order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.errors import (
    BookieReadOnlyError,
    BookieUnavailableError,
    BookKeeperError,
    DataMissingError,
    DigestMismatchError,
    InvariantError,
    LedgerFencedError,
    MetadataUnavailableError,
    NoSuchEntryError,
    RequestTimedOutError,
)
from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying import Throttle, copies_of
from bookkeeper.replication.copying.fragment import (
    ConfirmTarget,
    CopyFinished,
    CopyOutcome,
    Effect,
    FragmentCopy,
    ReadRun,
    SurveyTarget,
    SwapBookie,
    VerifyRun,
    WakeAt,
    WriteRun,
    _Step,
)
from tests.examples_of import examples

B = [BookieId(f"b{i}") for i in range(8)]
TARGET = BookieId("new")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
STRIPED = QuorumSpec(ensemble_size=4, write_quorum=2, ack_quorum=2)
SMALL = CopyConfig(run_entries_max=4, striped_run_entries_max=4, tries_max=3, retry_ms=100)


def closed(last: int = 9, spec: QuorumSpec = SPEC) -> LedgerMetadata:
    return LedgerMetadata.create(spec, B[: spec.ensemble_size]).close(last, 10 * (last + 1))


def machine(metadata: LedgerMetadata, *, bookie: BookieId = B[1], fragment: int = 0, **named: Any) -> FragmentCopy:
    named.setdefault("config", SMALL)
    return FragmentCopy(metadata, copies_of(metadata, bookie)[fragment], named.pop("target", TARGET), **named)


@pytest.mark.rule("V2")
def test_of_two_runs_that_wait_the_earlier_one_sets_the_alarm() -> None:
    copy = machine(closed(), config=replace(SMALL, tries_max=9))
    runs = [effect.entries[0] for effect in copy.start(0.0) if isinstance(effect, ReadRun)]
    assert len(runs) > 1
    copy.on_read_failed(runs[0], BookieUnavailableError("b0"), 0.0)
    later = copy.on_read_failed(runs[1], BookieUnavailableError("b0"), 0.05)
    assert [effect.time for effect in later if isinstance(effect, WakeAt)] == [pytest.approx(0.1)]


class World:
    """A target that does what it is told, sources, and a store; says what the machine made of it."""

    def __init__(self, copying: FragmentCopy, stored: LedgerMetadata) -> None:
        self.copying = copying
        self.stored = stored
        self.held: set[int] = set()
        self.read: list[int] = []
        self.now = 0.0
        self.wake: float | None = None
        self.pending: list[Effect] = []
        self.finished: CopyFinished | None = None

    def take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            assert self.finished is None, f"{effect} after the end"
            if isinstance(effect, CopyFinished):
                self.finished = effect
            elif isinstance(effect, WakeAt):
                self.wake = effect.time
            else:
                self.pending.append(effect)

    def swap(self, effect: SwapBookie) -> None:
        if effect.over == self.stored:
            self.stored = self.stored.swap_bookie(effect.first_entry, effect.old, effect.new)

    def done(self, effect: Effect) -> Sequence[Effect]:
        """Perform an effect; it goes well."""
        match effect:
            case SurveyTarget():
                return self.copying.on_surveyed(frozenset(self.held), self.now)
            case ReadRun():
                self.read += effect.entries
                return self.copying.on_read(effect.entries[0], 10 * len(effect.entries), self.now)
            case WriteRun():
                self.held.update(effect.entries)
                return self.copying.on_written(effect.entries[0], self.now)
            case VerifyRun():
                if self.held.issuperset(effect.entries):
                    return self.copying.on_verified(effect.entries[0], self.now)
                return self.copying.on_verify_failed(effect.entries[0], NoSuchEntryError("gone"), self.now)
            case SwapBookie():
                self.swap(effect)
                return self.copying.on_stored(self.stored, self.now)
            case ConfirmTarget():
                return self.copying.on_confirmed()
            case _:
                raise AssertionError(effect)

    def failed(self, effect: Effect, error: BookKeeperError) -> Sequence[Effect]:
        match effect:
            case SurveyTarget():
                return self.copying.on_surveyed(None, self.now)
            case ReadRun():
                return self.copying.on_read_failed(effect.entries[0], error, self.now)
            case WriteRun():
                self.held.update(effect.entries[: len(effect.entries) // 2])
                return self.copying.on_write_failed(effect.entries[0], error, self.now)
            case VerifyRun():
                return self.copying.on_verify_failed(effect.entries[0], error, self.now)
            case SwapBookie():
                return self.copying.on_stored(self.stored, self.now)
            case _:
                raise AssertionError(effect)

    def tick(self) -> None:
        assert self.wake is not None, f"nothing is pending, nothing will come: {self.copying}"
        self.now, self.wake = max(self.now, self.wake), None
        self.take(self.copying.on_tick(self.now))

    def run(self) -> CopyFinished:
        """Everything goes well from here on."""
        while self.finished is None:
            if self.pending:
                self.take(self.done(self.pending.pop(0)))
            else:
                self.tick()
        return self.finished


def begun(metadata: LedgerMetadata, **named: Any) -> World:
    copying = machine(metadata, **named)
    world = World(copying, metadata)
    world.take(copying.start(0.0))
    return world


@pytest.mark.rule("A1", "A5", "A6")
@pytest.mark.parametrize("spec", [SPEC, STRIPED])
def test_a_share_is_brought_over_verified_and_swapped_in(spec: QuorumSpec) -> None:
    metadata = closed(21, spec)
    world = begun(metadata)
    assert world.run() == CopyFinished(CopyOutcome.SWAPPED)
    share = {e for e in range(22) if spec.holds(1, e)}
    assert set(world.read) == world.held == share, "this share, and nothing else of the ledger"
    assert world.stored == metadata.swap_bookie(0, B[1], TARGET)
    assert world.copying.copied_entries == world.copying.verified_entries == len(share)
    assert world.copying.copied_bytes == 10 * len(share)


@pytest.mark.rule("A8")
def test_what_the_bookie_in_place_has_is_only_read_back_and_what_a_target_has_is_written_again() -> None:
    world = begun(closed(11), target=B[1])
    world.held = set(range(8))
    assert world.run() == CopyFinished(CopyOutcome.COMPLETED)
    assert world.read == [8, 9, 10, 11] and world.copying.verified_entries == 12
    other = begun(closed(11))
    other.held = set(range(8))
    assert other.run() == CopyFinished(CopyOutcome.SWAPPED)
    assert other.read == list(range(12)), "that it can be read does not prove that it is durable"


@pytest.mark.rule("A1")
def test_what_a_bookie_claims_and_cannot_give_back_is_brought_anew() -> None:
    world = begun(closed(3), target=B[1])
    world.take(world.copying.on_surveyed(range(4), 0.0))
    world.pending.pop(0)
    assert world.run() == CopyFinished(CopyOutcome.COMPLETED)
    assert world.read == [0, 1, 2, 3]


@pytest.mark.rule("A3")
@pytest.mark.parametrize("recovering", [False, True])
def test_the_last_fragment_of_a_ledger_that_is_not_closed_is_refused(recovering: bool) -> None:
    metadata = LedgerMetadata.create(SPEC, B[:3]).change_ensemble(10, B[1:4])
    if recovering:
        metadata = metadata.begin_recovery()
    world = begun(metadata, fragment=1)
    assert world.finished is not None and world.finished.outcome is CopyOutcome.FAILED
    assert isinstance(world.finished.error, LedgerFencedError) and "recover it first" in str(world.finished.error)
    assert world.pending == []
    earlier = begun(metadata, fragment=0)
    assert earlier.run() == CopyFinished(CopyOutcome.SWAPPED)
    assert earlier.held == set(range(10)) and earlier.stored.state == metadata.state


@pytest.mark.rule("A2")
def test_a_swap_that_loses_against_an_ensemble_change_is_tried_again_over_what_is_stored() -> None:
    metadata = LedgerMetadata.create(SPEC, B[:3]).change_ensemble(10, B[1:4])
    world = begun(metadata)
    while not isinstance(world.pending[0], SwapBookie):
        world.take(world.done(world.pending.pop(0)))
    world.stored = changed = metadata.change_ensemble(20, B[3:6])
    assert world.run() == CopyFinished(CopyOutcome.SWAPPED)
    assert world.stored == changed.swap_bookie(0, B[1], TARGET)


@pytest.mark.rule("A1", "A2b")
def test_to_a_target_that_was_started_again_everything_is_brought_once_more() -> None:
    world = begun(closed(), config=CopyConfig(target_lives_max=2))
    for _ in range(2):
        while not isinstance(world.pending[0], SwapBookie):
            world.take(world.done(world.pending.pop(0)))
        world.pending.clear()
        world.held.clear()
        read = len(world.read)
        world.take(world.copying.on_target_restarted(world.now))
    assert read == 2 * world.copying.copy.held(SPEC), "each time from the beginning"
    assert (
        world.finished is not None and world.finished.outcome is CopyOutcome.FAILED and world.finished.target_at_fault
    )
    assert "new was started again and again" in str(world.finished.error)


@pytest.mark.rule("A2", "A5")
@pytest.mark.parametrize(
    ("other", "outcome"), [(B[5], CopyOutcome.OVERTAKEN), (TARGET, CopyOutcome.SWAPPED)], ids=["another", "the same"]
)
def test_another_repairer_was_first(other: BookieId, outcome: CopyOutcome) -> None:
    metadata = closed()
    world = begun(metadata)
    while not isinstance(world.pending[0], SwapBookie):
        world.take(world.done(world.pending.pop(0)))
    world.stored = repaired = metadata.swap_bookie(0, B[1], other)
    assert world.run() == CopyFinished(outcome)
    assert world.stored == repaired


@pytest.mark.rule("A2")
def test_another_repairer_gave_the_target_another_place() -> None:
    metadata = closed()
    world = begun(metadata)
    while not isinstance(world.pending[0], SwapBookie):
        world.take(world.done(world.pending.pop(0)))
    world.stored = metadata.swap_bookie(0, B[2], TARGET)
    end = world.run()
    assert end.outcome is CopyOutcome.FAILED and end.target_at_fault, "another target may do"


def test_a_ledger_that_was_deleted_needs_no_repair() -> None:
    world = begun(closed())
    while not isinstance(world.pending[0], SwapBookie):
        world.take(world.done(world.pending.pop(0)))
    world.take(world.copying.on_gone(0.0))
    assert world.finished == CopyFinished(CopyOutcome.GONE)
    assert world.copying.on_stored(closed(), 0.0) == world.copying.on_tick(9.0) == []


@pytest.mark.rule("A4")
def test_silence_is_asked_again_and_ends_the_attempt_when_it_lasts() -> None:
    world = begun(closed(3))
    for _ in range(SMALL.tries_max - 1):
        world.take(world.failed(world.pending.pop(0), RequestTimedOutError("slow")))
        assert world.pending == [] and world.finished is None
        world.tick()
    world.take(world.failed(world.pending.pop(0), RequestTimedOutError("slow")))
    assert world.finished is not None and isinstance(world.finished.error, RequestTimedOutError)
    assert not world.finished.target_at_fault, "a source was silent"
    assert world.stored == closed(3)


@pytest.mark.rule("A1", "A4")
def test_a_target_that_keeps_forgetting_is_given_up() -> None:
    world = begun(closed(3))
    for _ in range(200):
        if world.finished is not None:
            break
        if not world.pending:
            world.tick()
        elif isinstance(effect := world.pending.pop(0), WriteRun):
            world.take(world.copying.on_written(effect.entries[0], world.now))
        else:
            world.take(world.done(effect))
    assert world.finished is not None
    assert world.finished.target_at_fault and isinstance(world.finished.error, NoSuchEntryError)


@pytest.mark.parametrize(
    ("step", "error", "fault"),
    [
        (WriteRun, BookieReadOnlyError("full"), True),
        (ReadRun, DataMissingError("on none of its bookies"), False),
    ],
)
def test_what_trying_again_cannot_mend_ends_the_attempt_at_once(
    step: type, error: BookKeeperError, fault: bool
) -> None:
    world = begun(closed(3))
    while not isinstance(world.pending[0], step):
        world.take(world.done(world.pending.pop(0)))
    world.take(world.failed(world.pending.pop(0), error))
    assert world.finished == CopyFinished(CopyOutcome.FAILED, error, fault)


def test_a_store_that_does_not_answer_ends_the_attempt() -> None:
    world = begun(closed(3))
    while not isinstance(world.pending[0], SwapBookie):
        world.take(world.done(world.pending.pop(0)))
    error = MetadataUnavailableError("away")
    world.take(world.copying.on_store_failed(error, 0.0))
    assert world.finished == CopyFinished(CopyOutcome.FAILED, error)


def test_a_copy_is_completed_in_its_place_without_a_swap() -> None:
    world = begun(closed(11), target=B[1])
    world.held = {0, 1, 2, 3, 9}
    assert world.run() == CopyFinished(CopyOutcome.COMPLETED)
    assert world.held == set(range(12)) and world.stored == closed(11)


@pytest.mark.rule("A1", "A2b")
def test_a_copy_in_place_is_complete_only_in_the_life_in_which_it_was_read_back() -> None:
    """Cause: a copy in place asked for no incarnation. What the bookie said it holds, and what was read back from it,
    was of a life before, and the mark went."""
    world = begun(closed(11), target=B[1], config=replace(SMALL, target_lives_max=3))
    world.held = set(range(8))
    while not isinstance(world.pending[0], ConfirmTarget):
        world.take(world.done(world.pending.pop(0)))
    world.pending.clear()
    world.held = set(range(4))
    world.take(world.copying.on_target_restarted(world.now))
    assert [type(effect) for effect in world.pending] == [SurveyTarget], "it is asked anew"
    assert world.run() == CopyFinished(CopyOutcome.COMPLETED)
    assert world.held == set(range(12)) and world.read == [8, 9, 10, 11, *range(4, 12)]


@pytest.mark.rule("A2b")
def test_a_bookie_that_starts_again_and_again_is_not_completed_in_place() -> None:
    world = begun(closed(3), target=B[1], config=CopyConfig(target_lives_max=2))
    for _ in range(2):
        while not isinstance(world.pending[0], ConfirmTarget):
            world.take(world.done(world.pending.pop(0)))
        world.pending.clear()
        world.take(world.copying.on_target_restarted(world.now))
    assert world.finished is not None and world.finished.outcome is CopyOutcome.FAILED
    assert "was started again and again" in str(world.finished.error)


def test_a_store_that_does_not_say_in_which_life_a_bookie_is_leaves_the_copy_undone() -> None:
    world = begun(closed(3), target=B[1])
    while not isinstance(world.pending[0], ConfirmTarget):
        world.take(world.done(world.pending.pop(0)))
    assert world.copying.on_stored(closed(3), 0.0) == [], "nothing was swapped"
    error = MetadataUnavailableError("away")
    world.take(world.copying.on_store_failed(error, 0.0))
    assert world.finished == CopyFinished(CopyOutcome.FAILED, error)
    assert world.copying.on_confirmed() == []


@pytest.mark.rule("A1")
def test_what_was_neither_acknowledged_nor_said_to_be_durable_stops_the_machine() -> None:
    world = begun(closed(3), target=B[1])
    world.take(world.copying.on_surveyed(range(2), 0.0))
    world.copying._runs[0].step = _Step.VERIFYING
    with pytest.raises(InvariantError, match="A1"):
        world.copying.on_verified(0, 0.0)


def test_an_empty_fragment_is_swapped_at_once() -> None:
    world = begun(closed(-1))
    assert world.run() == CopyFinished(CopyOutcome.SWAPPED)
    assert world.read == []


def test_what_is_on_its_way_is_bounded_in_bytes_and_in_time() -> None:
    config = replace(SMALL, window_bytes=100)
    world = begun(closed(399), config=config, entry_bytes=10, throttle=Throttle(400))
    reads = 0
    while world.finished is None:
        on_the_way = [e.entries for e in world.pending if isinstance(e, ReadRun | WriteRun | VerifyRun)]
        assert sum(map(len, on_the_way)) < 14, "the window and one run"
        if world.pending:
            reads += isinstance(world.pending[0], ReadRun)
            world.take(world.done(world.pending.pop(0)))
        else:
            world.tick()
    assert reads == 100
    assert 8.0 < world.now < 10.5, "4,000 bytes at 400 a second, one second's worth ahead"


@pytest.mark.rule("A1")
def test_a_swap_before_everything_is_verified_stops_the_machine() -> None:
    world = begun(closed(7))
    with pytest.raises(InvariantError, match="A1"):
        world.copying._swap()
    run = world.copying._runs[0]
    run.step = _Step.VERIFYING
    with pytest.raises(InvariantError, match="A1"):
        world.copying.on_verified(0, 0.0)


ERRORS = [
    RequestTimedOutError("slow"),
    BookieUnavailableError("away"),
    DigestMismatchError("damaged"),
    NoSuchEntryError("not here"),
]


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.rule("A1", "A2", "A3", "A4", "A5", "A6")
def test_in_any_order_of_events_nothing_is_swapped_that_the_target_does_not_hold(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from([SPEC, STRIPED, QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)]))
    metadata = LedgerMetadata.create(spec, B[: spec.ensemble_size])
    if data.draw(st.booleans()):
        metadata = metadata.change_ensemble(data.draw(st.integers(1, 30)), B[1 : spec.ensemble_size + 1])
    end = data.draw(st.sampled_from(["open", "recovering", "closed"]))
    if end == "recovering":
        metadata = metadata.begin_recovery()
    if end == "closed":
        metadata = metadata.close(metadata.last_fragment.first_entry + data.draw(st.integers(-1, 30)), 1)
    copy = data.draw(st.sampled_from(copies_of(metadata)))
    config = replace(SMALL, window_bytes=data.draw(st.sampled_from([1, 60, 10_000])))
    copying = FragmentCopy(
        metadata, copy, TARGET, config=config, throttle=Throttle(data.draw(st.sampled_from([0, 500])))
    )
    world = World(copying, metadata)
    world.held = data.draw(st.sets(st.integers(0, 60)))
    before = metadata
    world.take(copying.start(0.0))
    for _ in range(400):
        if world.finished is not None:
            break
        assert world.pending or world.wake is not None, f"stuck: {copying}"
        if not world.pending or data.draw(st.integers(0, 9)) == 0:
            if world.wake is None:
                continue
            world.tick()
            continue
        effect = world.pending.pop(data.draw(st.integers(0, len(world.pending) - 1)))
        match data.draw(st.sampled_from(["well"] * 5 + ["fails", "crash", "writer", "rival"])):
            case "fails":
                world.take(world.failed(effect, data.draw(st.sampled_from(ERRORS))))
                continue
            case "crash":  # the target forgets what it had not acknowledged; here: some of what it had
                if not isinstance(effect, SwapBookie):
                    world.held -= data.draw(st.sets(st.integers(0, 60), max_size=3)) - _verified(copying, spec)
            case "writer" if end == "open":
                first = world.stored.last_fragment.first_entry + data.draw(st.integers(1, 5))
                world.stored = world.stored.change_ensemble(first, B[2 : spec.ensemble_size + 2])
            case "rival" if copy.is_decided and data.draw(st.booleans()):
                now = next((c for c in copies_of(world.stored, copy.bookie) if c.first_entry == copy.first_entry), None)
                if now is not None and B[7] not in world.stored.bookies:
                    world.stored = world.stored.swap_bookie(copy.first_entry, copy.bookie, B[7])
            case _:
                pass
        world.take(world.done(effect))
        if TARGET in world.stored.bookies and before == metadata:
            before = world.stored
            share = {e for run in copy.runs(spec, 99) for e in run}
            assert share <= world.held, "A1: swapped in without its whole share"
            assert copy.is_decided, "A3"
    assert (TARGET in world.stored.bookies) == (
        world.finished is not None and world.finished.outcome is CopyOutcome.SWAPPED
    ), world.finished


def _verified(copying: FragmentCopy, spec: QuorumSpec) -> set[int]:
    """What was acknowledged and read back stays: it is durable."""
    begun_runs = {e for run in copying._runs.values() for e in run.entries}
    return {e for run in copying.copy.runs(spec, 99) for e in run} - begun_runs


@pytest.mark.rule("P12")
@pytest.mark.parametrize("spec", [SPEC, STRIPED], ids=["whole", "striped"])
def test_what_was_read_of_a_run_goes_on_and_the_rest_is_read_later(spec: QuorumSpec) -> None:
    copying = machine(closed(39, spec))
    share = [entry for run in copying.copy.runs(spec, 100) for entry in run]
    read: list[int] = []
    verified: list[int] = []
    todo = copying.start(0.0)
    while copying.finished is None:
        match effect := todo.pop(0):
            case ReadRun(entries):
                read.append(entries[0])
                todo += copying.on_read(entries[0], 5_000, 0.0, 1)
            case WriteRun(_, entries):
                todo += copying.on_written(entries[0], 0.0)
            case VerifyRun(_, entries):
                verified += entries
                todo += copying.on_verified(entries[0], 0.0)
            case SwapBookie():
                todo += copying.on_stored(effect.over.swap_bookie(effect.first_entry, effect.old, effect.new), 0.0)
    assert copying.finished.outcome is CopyOutcome.SWAPPED
    assert sorted(read) == sorted(verified) == share
