"""What the monitor notices, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper import wire
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState, QuorumSpec
from bookkeeper.wire import Status
from tests.simulation.watch.monitor import Monitor

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
OPEN = LedgerMetadata.create(SPEC, [BookieId(name) for name in ("b1", "b2", "b3")])
RECOVERING = OPEN.change_ensemble(5, [BookieId(name) for name in ("b1", "b2", "b4")]).begin_recovery()
LEDGER = LedgerId(7)


class _Bookie:
    """Answers everything with one status."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def handle(self, header: object, request: wire.Request, reply: object) -> None:
        reply(wire.failure(request, self.status) if self.status is not Status.OK else _ok(request))  # type: ignore[operator]


def _ok(request: wire.Request) -> wire.Reply:
    if isinstance(request, wire.AddEntry):
        return wire.AddReply(Status.OK, request.ledger_id, request.entry_id)
    if isinstance(request, wire.ForceLedger):
        return wire.ForceReply(Status.OK, request.ledger_id)
    assert isinstance(request, wire.ReadEntry)
    return wire.ReadReply(Status.OK, request.ledger_id, request.entry_id, b"entry")


def answered(monitor: Monitor, name: str, request: wire.Request, status: Status) -> list[str]:
    bookie = _Bookie(status)
    monitor.watch_bookie(name, bookie)  # type: ignore[arg-type]
    bookie.handle(None, request, lambda reply: None)
    return [problem.split(":")[0] for problem in monitor.problems]


@pytest.mark.rule("W1", "W4")
def test_an_ack_needs_an_ack_quorum_of_the_committed_write_set() -> None:
    monitor = Monitor()
    monitor.durable["b1"].add((LEDGER, 0))
    monitor.durable["b9"].add((LEDGER, 0))
    monitor.on_ack(LEDGER, 0, OPEN)
    assert len(monitor.problems) == 1
    monitor.durable["b3"].add((LEDGER, 0))
    monitor.on_ack(LEDGER, 0, OPEN)
    assert len(monitor.problems) == 1


@pytest.mark.rule("R3", "B2")
@pytest.mark.parametrize("status", [Status.OK, Status.NO_ENTRY, Status.NO_LEDGER])
def test_nothing_is_said_to_a_fencing_read_before_the_fence_is_durable(status: Status) -> None:
    read = wire.ReadEntry(LEDGER, EntryId(-1), master_key=b"", fence=True)
    assert answered(Monitor(), "b1", read, status) == ["R3"]
    fenced = Monitor()
    fenced.fences["b1"].add(LEDGER)
    assert answered(fenced, "b1", read, status) == []


@pytest.mark.rule("R2", "R3", "R4", "R5", "B1", "B5")
def test_what_recovery_may_be_told_and_where_it_may_read_and_write() -> None:
    def judge(name: str, request: wire.Request, status: Status, fenced: bool = False) -> list[str]:
        monitor = Monitor(lambda ledger: RECOVERING)
        monitor.durable["b1"].add((LEDGER, 6))
        if fenced:
            for bookie in (name, "b1", "b2", "b4"):
                monitor.fences[bookie].add(LEDGER)
        return answered(monitor, name, request, status)

    unfenced = wire.ReadEntry(LEDGER, EntryId(8), priority=wire.HIGH_PRIORITY)
    assert judge("b1", unfenced, Status.NO_ENTRY) == ["R3"]
    assert judge("b1", unfenced, Status.NO_ENTRY, fenced=True) == []
    earlier = wire.ReadEntry(LEDGER, EntryId(4), priority=wire.HIGH_PRIORITY)
    assert judge("b1", earlier, Status.NO_ENTRY) == []
    fencing = wire.ReadEntry(LEDGER, EntryId(8), master_key=b"", fence=True, priority=wire.HIGH_PRIORITY)
    assert judge("b1", fencing, Status.OK)[0] == "R2"
    assert judge("b3", fencing, Status.OK, fenced=True) == ["R5"]
    assert judge("b4", fencing, Status.OK, fenced=True) == []
    assert judge("b1", wire.ReadEntry(LEDGER, EntryId(6)), Status.NO_ENTRY) == ["B5"]
    add = wire.AddEntry(LEDGER, EntryId(4), b"", b"", recovery=True, priority=wire.HIGH_PRIORITY)
    assert judge("b1", add, Status.OK) == ["R4"]
    assert judge("b1", replace(add, priority=0), Status.OK) == ["B1"], "repair may bring copies of complete fragments"
    assert judge("b1", replace(add, entry_id=EntryId(7)), Status.OK) == ["B1"]
    assert judge("b1", replace(add, entry_id=EntryId(6)), Status.OK) == []


@pytest.mark.rule("R2", "R9")
def test_a_ledger_is_closed_under_cover_and_keeps_its_ensemble_until_then() -> None:
    monitor = Monitor()
    closed = RECOVERING.close_recovered(9, 10)
    monitor.fences["b1"].add(LEDGER)
    monitor.on_metadata(LEDGER, RECOVERING, closed)
    assert [problem[:2] for problem in monitor.problems] == ["R2"]
    monitor.fences["b4"].add(LEDGER)
    monitor.on_metadata(LEDGER, RECOVERING, closed)
    assert len(monitor.problems) == 1
    monitor.on_metadata(LEDGER, replace(OPEN, state=LedgerState.IN_RECOVERY), RECOVERING)
    assert [problem[:2] for problem in monitor.problems] == ["R2", "R9"]
    assert monitor.counts["recoveries"] == 2


@pytest.mark.rule("W11", "B1")
def test_a_deferred_add_promises_nothing_and_a_force_everything_before_it() -> None:
    add = wire.AddEntry(LEDGER, EntryId(0), b"", bytes(40))
    assert answered(Monitor(), "b1", add, Status.OK) == ["B1"]
    monitor = Monitor()
    deferred = replace(add, deferred_sync=True)
    assert answered(monitor, "b1", deferred, Status.OK) == []
    assert answered(monitor, "b1", wire.ForceLedger(LedgerId(8)), Status.OK) == [], "another ledger's"
    assert answered(monitor, "b2", wire.ForceLedger(LEDGER), Status.OK) == [], "it has taken nothing"
    monitor.deferred["b1"].add((LEDGER, 0))
    assert answered(monitor, "b1", wire.ForceLedger(LEDGER), Status.OK) == ["W11"]
    assert answered(Monitor(), "b1", replace(deferred, recovery=True), Status.OK) == ["B1"], "written back is durable"


@pytest.mark.rule("W11")
def test_a_forced_entry_is_on_all_of_its_bookies() -> None:
    monitor = Monitor()
    for name in ("b1", "b2"):
        monitor.durable[name].add((LEDGER, 0))
    monitor.on_forced(LEDGER, 0, OPEN)
    assert [problem.split(":")[0] for problem in monitor.problems] == ["W11"]
    monitor.durable["b3"].add((LEDGER, 0))
    monitor.on_forced(LEDGER, 0, OPEN)
    assert len(monitor.problems) == 1


@pytest.mark.rule("W10a", "B5")
def test_what_a_wiped_bookie_had_may_be_missing_but_not_denied() -> None:
    monitor = Monitor()
    monitor.durable["b1"].add((LEDGER, 0))
    monitor.on_wiped("b1")
    read = wire.ReadEntry(LEDGER, EntryId(0))
    assert answered(monitor, "b1", read, Status.UNKNOWN_STATE) == []
    assert answered(monitor, "b1", read, Status.NO_LEDGER) == ["B5"]


@pytest.mark.rule("B5", "B9")
def test_what_a_hurt_bookie_has_lost_may_be_unknown_but_not_denied() -> None:
    monitor = Monitor(lambda ledger: OPEN)
    monitor.durable["b1"].add((LEDGER, 0))
    monitor.hurt.add("b1")
    read = wire.ReadEntry(LEDGER, EntryId(0))
    assert answered(monitor, "b1", read, Status.UNKNOWN_STATE) == []
    assert answered(monitor, "b1", read, Status.NO_ENTRY) == ["B5"]


@pytest.mark.rule("B5")
def test_a_hurt_bookie_may_deny_what_is_behind_a_ledgers_end() -> None:
    closed = RECOVERING.close_recovered(5, 10)
    monitor = Monitor(lambda ledger: closed)
    monitor.durable["b1"].update({(LEDGER, 5), (LEDGER, 6)})
    read = wire.ReadEntry(LEDGER, EntryId(6))
    assert answered(monitor, "b1", read, Status.NO_ENTRY) == ["B5"], "it is whole: it has what it had"
    monitor.problems.clear()
    monitor.hurt.add("b1")
    assert answered(monitor, "b1", read, Status.NO_ENTRY) == []
    assert answered(monitor, "b1", replace(read, entry_id=EntryId(5)), Status.NO_ENTRY) == ["B5"]


def test_only_where_every_copy_may_be_hurt_a_ledger_may_be_unknown() -> None:
    monitor = Monitor(lambda ledger: OPEN)
    monitor.hurt.add("b1")
    assert not monitor.may_be_unknown(LEDGER), "two acknowledge"
    one = LedgerMetadata.create(
        QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=1), OPEN.last_fragment.ensemble[:2]
    )
    monitor = Monitor(lambda ledger: one)
    assert not monitor.may_be_unknown(LEDGER)
    monitor.hurt.add("b2")
    assert monitor.may_be_unknown(LEDGER)


def test_nothing_is_judged_by_metadata_while_they_are_not_what_they_were() -> None:
    monitor = Monitor(lambda ledger: OPEN)
    monitor.resting = True
    monitor.on_ack(LEDGER, 0, OPEN)
    assert monitor.problems == []
    monitor.durable["b1"].add((LEDGER, 0))
    assert answered(monitor, "b1", wire.ReadEntry(LEDGER, EntryId(0)), Status.NO_ENTRY) == ["B5"], "what a bookie has"
    monitor.problems.clear()
    monitor.resting = False
    monitor.on_ack(LEDGER, 0, OPEN)
    assert [problem.split(":")[0] for problem in monitor.problems] == ["W1"]


@pytest.mark.rule("K30")
def test_a_start_knows_the_suspects_that_the_life_before_has_noted() -> None:
    class _Disk:
        def __init__(self, suspects: set[int], noted: set[int]) -> None:
            self.suspects, self.scrubber = frozenset(suspects), self
            self.remembered = frozenset(noted)

        def ledgers(self) -> list[int]:
            return [1, 2, 3]

    def judged(before: _Disk, after: _Disk, *, rotten: bool = True) -> list[str]:
        monitor = Monitor()
        if rotten:
            monitor.rotten["b1"].add(("log", 1))
        for disk in (before, after):
            monitor._check_suspicion("b1", disk)  # type: ignore[arg-type]
        return [problem.split(":")[0] for problem in monitor.problems]

    assert judged(_Disk({1, 2}, {1}), _Disk({1}, set())) == [], "2 was not noted yet"
    assert judged(_Disk({1}, {1, 2}), _Disk({1}, set())) == [], "2 is whole again"
    assert judged(_Disk({1, 9}, {1, 9}), _Disk({1}, set())) == [], "9 is deleted"
    assert judged(_Disk({1}, {1}), _Disk(set(), set())) == ["K30"]
    assert judged(_Disk({1}, {1}), _Disk(set(), set()), rotten=False) == [], "its files were damaged in other ways"
