"""Which log a record goes to, what is in memory, and what is written when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bookkeeper.errors import InvariantError
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.ledger_logs.ledger_logs import SHARED, GroupPart, LedgerLogs, LogWrite
from tests.examples_of import examples

RECORD = b"r" * 100
HALF = 1000


class Desk:
    """The machine, and the one group that collects."""

    def __init__(self, *, log_bytes: int = BLOCK + 10_000, open_max: int = 2, idle_s: float = 60.0) -> None:
        self.next_log, self.last_single = 1, 10**6
        self.ended: list[int] = []
        self.group: dict[int, GroupPart] = {}
        self.logs = LedgerLogs(
            self.begin,
            self.ended.append,
            log_bytes=log_bytes,
            buffer_bytes=2 * HALF,
            open_max=open_max,
            idle_s=idle_s,
        )

    def begin(self, shared: bool) -> int | None:
        if self.next_log > self.last_single and not shared:
            return None
        self.next_log += 1
        return self.next_log - 1

    def take(self, owner: int, records: bytes = RECORD) -> int:
        """The place of the first."""
        log = self.logs.take(owner, records)
        self.group[log.log_id] = GroupPart(log.end, {owner: [len(records), 1]})
        return place(log.log_id, log.end - len(records))

    def durable(self, now: float = 0.0) -> None:
        group, self.group = self.group, {}
        self.logs.made_durable(group, now)

    def write(self) -> list[LogWrite]:
        plan = self.logs.plan()
        for log_id, _ in plan.give_way:
            self.logs.gave_way(log_id)
        for write in plan.writes:
            assert self.logs.wrote(write)
        self.logs.ended_writing()
        self.logs.validate_state()
        return plan.writes


def offsets(writes: list[LogWrite]) -> list[tuple[int, int, int]]:
    return [(write.log_id, write.offset, len(write.data)) for write in writes]


@pytest.mark.rule("K34")
def test_a_record_has_its_place_at_once_and_is_read_from_memory() -> None:
    desk = Desk()
    first, second = desk.take(7, b"\0\0\0\x02crc.aa"), desk.take(7, b"\0\0\0\x01crc.b")
    assert (first, second) == (place(1, BLOCK), place(1, BLOCK + 10))
    other = desk.take(8)
    assert other == place(2, BLOCK), "each ledger has its own"
    memory = desk.logs.holding(first)
    assert memory is not None and memory is desk.logs.holding(second) is not desk.logs.holding(other)
    assert memory.record_from(BLOCK) == b"\0\0\0\x02crc.aa" and memory.record_from(BLOCK + 10) == b"\0\0\0\x01crc.b"
    assert memory.read(BLOCK + 8, 100) == b"aa\0\0\0\x01crc.b" and memory.end == BLOCK + 19
    assert desk.logs.holding(place(9, BLOCK)) is None, "of a log that is a file like any other"


@pytest.mark.rule("K33")
def test_only_what_is_durable_is_written_and_the_rest_stays() -> None:
    desk = Desk()
    desk.take(7)
    desk.take(8)
    desk.durable()
    at = desk.take(7)
    assert offsets(desk.write()) == [(1, BLOCK, 100), (2, BLOCK, 100)]
    assert desk.logs.holding(place(1, BLOCK)) is None, "it is in the file"
    assert desk.logs.holding(at) is not None and desk.logs.buffered == 100
    desk.durable()
    assert offsets(desk.write()) == [(1, BLOCK + 100, 100)], "in one piece, where the last one ended"
    assert desk.logs.buffered == desk.logs.writable == 0


@pytest.mark.rule("K33", "K34")
def test_while_bytes_are_written_reads_find_them_and_others_come() -> None:
    desk = Desk()
    first = desk.take(7)
    desk.durable()
    second = desk.take(7)
    plan = desk.logs.plan()
    assert desk.logs.holding(first) is not desk.logs.holding(second)
    third = desk.take(7)
    for found in (first, second, third):
        memory = desk.logs.holding(found)
        assert memory is not None and memory.read(found % 2**40, 100) == RECORD
    desk.logs.validate_state()
    desk.logs.not_written(plan.writes[0])
    desk.logs.ended_writing()
    desk.logs.validate_state()
    assert desk.logs.holding(first) is desk.logs.holding(third), "nothing is lost"
    desk.durable()
    assert offsets(desk.write()) == [(1, BLOCK, 300)]


@pytest.mark.rule("P12")
def test_half_of_the_buffer_is_written_and_the_other_half_makes_the_next_group_wait() -> None:
    desk = Desk()
    for at in range(9):
        desk.take(at)
    desk.durable()
    assert [desk.logs.due] == [False]
    desk.take(9)
    desk.durable()
    assert [desk.logs.due] == [True] and desk.logs.writable == HALF
    desk.logs.plan()
    assert [desk.logs.due] == [False]
    for at in range(10):
        desk.take(at)
    desk.durable()
    assert desk.logs.due and desk.logs.writing and desk.logs.buffered == 2 * HALF


@pytest.mark.rule("K5")
def test_few_descriptors_stay_open_and_the_one_that_was_written_longest_ago_is_synced_and_closed() -> None:
    desk = Desk(open_max=2)
    for owner in (7, 8):
        desk.take(owner)
    desk.durable()
    assert [write.keep for write in desk.write()] == [True, True]
    desk.take(9)
    desk.durable()
    plan = desk.logs.plan()
    assert plan.give_way == [(1, True)], "it has bytes that no sync has taken"
    desk.logs.gave_way(1)
    assert all(desk.logs.wrote(write) for write in plan.writes)
    desk.logs.ended_writing()
    desk.logs.validate_state()
    assert desk.logs.must_sync({1: BLOCK + 100, 2: BLOCK + 100, 3: BLOCK + 100}) == [2, 3]
    desk.logs.was_synced(2, BLOCK + 100)
    assert desk.logs.must_sync({2: BLOCK + 100}) == []
    desk.take(7)
    desk.durable()
    plan = desk.logs.plan()
    assert plan.give_way == [(2, False)] and not plan.writes[0].make, "its file is opened again"


@pytest.mark.rule("K5")
def test_with_more_logs_than_descriptors_a_write_syncs_the_others_at_once() -> None:
    desk = Desk(open_max=2)
    for owner in range(5):
        desk.take(owner)
    desk.durable()
    writes = desk.write()
    assert [write.keep for write in writes] == [False, False, False, True, True]
    ends = {write.log_id: BLOCK + 100 for write in writes}
    assert desk.logs.must_sync(ends) == [4, 5]


@pytest.mark.rule("K5")
def test_a_descriptor_that_could_not_be_synced_stays() -> None:
    desk = Desk(open_max=1)
    desk.take(7)
    desk.durable()
    desk.write()
    desk.take(8)
    desk.durable()
    plan = desk.logs.plan()
    assert plan.give_way == [(1, True)]
    desk.logs.did_not_give_way(1)
    desk.logs.not_written(plan.writes[0])
    desk.logs.ended_writing()
    desk.logs.validate_state()
    assert desk.logs.must_sync({1: BLOCK + 100}) == [1]


@pytest.mark.rule("K28", "K5")
@pytest.mark.parametrize("done", range(5))
def test_wherever_a_plan_ends_no_more_descriptors_stay_open_than_may(done: int) -> None:
    desk = Desk(open_max=2)
    for owner in range(4):
        desk.take(owner)
    parts, desk.group = desk.group, {}
    desk.logs.made_durable({log_id: parts[log_id] for log_id in (3, 4)}, 0.0)
    assert [write.keep for write in desk.write()] == [True, True]
    desk.take(2)
    desk.take(3)
    desk.durable()
    desk.logs.made_durable({log_id: parts[log_id] for log_id in (1, 2)}, 0.0)
    plan = desk.logs.plan()
    for number, write in enumerate(plan.writes):
        if number < done:
            assert desk.logs.wrote(write)
        else:
            desk.logs.not_written(write)
    desk.logs.ended_writing()
    desk.logs.validate_state()
    assert sum(log.open for log_id in range(1, 5) if (log := desk.logs.log(log_id)) is not None) <= 2


@pytest.mark.rule("K13")
def test_a_checkpoint_covers_nothing_that_is_only_in_memory() -> None:
    desk = Desk()
    desk.take(7)
    desk.durable()
    with pytest.raises(InvariantError, match="K13"):
        desk.logs.must_sync({1: BLOCK + 100})


def test_a_full_log_ends_and_its_ledger_begins_another() -> None:
    desk = Desk(log_bytes=BLOCK + 150)
    assert [desk.take(7) for _ in range(3)] == [place(1, BLOCK), place(1, BLOCK + 100), place(2, BLOCK)]
    assert (desk.ended, desk.logs.have_ended) == ([1], True)
    desk.durable()
    desk.write()
    assert desk.logs.finished([1, 99]) == [1]
    assert (desk.logs.have_ended, desk.logs.holding(place(1, BLOCK))) == (False, None)
    with pytest.raises(InvariantError, match="K34"):
        desk.logs.finished([2])


def test_a_ledger_that_is_said_to_be_closed_may_go_on() -> None:
    desk = Desk()
    desk.take(7)
    assert desk.logs.end_of(7) and not desk.logs.end_of(7) and not desk.logs.end_of(8)
    assert desk.ended == [1]
    assert desk.take(7) == place(2, BLOCK)
    desk.logs.validate_state()


def test_a_log_ends_when_nothing_came_for_long() -> None:
    desk = Desk(idle_s=60)
    desk.take(7)
    desk.durable(now=100.0)
    desk.take(8)
    desk.durable(now=130.0)
    desk.take(9)
    assert desk.logs.end_idle(159.0) == 0
    assert desk.logs.end_idle(160.0) == 1 and desk.ended == [1]
    assert desk.logs.end_idle(1000.0) == 1, "what is not durable yet is no end"
    assert Desk(idle_s=0).logs.end_idle(1e9) == 0


@pytest.mark.rule("K34")
def test_the_log_of_a_deleted_ledger_goes_with_what_is_in_memory() -> None:
    desk = Desk()
    desk.take(7)
    desk.take(8)
    desk.durable()
    desk.logs.end_of(7)
    desk.take(SHARED)
    assert desk.logs.ended_of({7, 8}.__contains__) == [1], "one that takes records stays"
    desk.logs.removed(1)
    desk.logs.removed(1)
    desk.logs.validate_state()
    assert desk.logs.buffered == 200 and desk.logs.writable == 100
    assert offsets(desk.write()) == [(2, BLOCK, 100)]
    desk.logs.end_all()
    assert desk.logs.ended_of(lambda owner: True) == [2], "the shared one is nobody's"


@pytest.mark.rule("K10")
def test_when_ids_run_out_ledgers_share_a_log() -> None:
    desk = Desk()
    desk.take(7)
    assert [desk.logs.must_share] == [False]
    desk.last_single = 1
    assert [desk.take(8), desk.take(9), desk.take(7)] == [
        place(2, BLOCK),
        place(2, BLOCK + 100),
        place(1, BLOCK + 100),
    ]
    desk.durable()
    assert offsets(desk.write()) == [(1, BLOCK, 200), (2, BLOCK, 200)] and desk.logs.must_share


def test_a_write_of_a_log_that_is_gone_is_nobodys() -> None:
    desk = Desk()
    desk.take(7)
    desk.durable()
    write = desk.logs.plan().writes[0]
    assert desk.logs.wrote(write)
    desk.logs.ended_writing()
    desk.logs.end_of(7)
    desk.logs.removed(1)
    assert not desk.logs.wrote(write)
    desk.logs.not_written(write)
    desk.logs.gave_way(1)
    desk.logs.did_not_give_way(1)
    desk.logs.validate_state()


def _spoil(name: str, value: int) -> Callable[[LedgerLogs], None]:
    return lambda logs: setattr(logs.log(1), name, value)


def _close(logs: LedgerLogs) -> None:
    setattr(logs.log(1), "open", False)  # noqa: B010
    logs._recent.clear()


SPOILT: dict[str, tuple[str, Callable[[LedgerLogs], None]]] = {
    "more is durable than there is": ("K33", _spoil("journalled", 10**6)),
    "more is synced than written": ("K34", _spoil("synced", 10**6)),
    "unsynced and closed": ("K5", _close),
    "it takes records and has ended": ("K34", lambda logs: setattr(logs.log(1), "ended", True)),
    "bytes that nobody counts": ("P12", lambda logs: setattr(logs, "buffered", 1)),
    "bytes that nobody may write": ("P12", lambda logs: setattr(logs, "writable", 1)),
}


@pytest.mark.rule("K33", "K34", "K5")
@pytest.mark.parametrize("what", SPOILT)
def test_a_state_that_cannot_be_is_noticed(what: str) -> None:
    number, spoil = SPOILT[what]
    desk = Desk()
    desk.take(7)
    desk.durable()
    desk.write()
    spoil(desk.logs)
    with pytest.raises(InvariantError, match=number):
        desk.logs.validate_state()


class Logs(RuleBasedStateMachine):
    """Any order of events, against a list of what each place holds."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(log_bytes=BLOCK + 700, open_max=2)
        self.model: dict[int, bytes] = {}
        """Place -> what was taken there."""
        self.files: dict[int, bytearray] = {}
        self.synced: dict[int, int] = {}
        self.plan: Any = None
        self.collected = self.count = 0
        self.durable_places: set[int] = set()
        self.group: list[int] = []

    @property
    def logs(self) -> LedgerLogs:
        return self.desk.logs

    @rule(owner=st.integers(1, 4), size=st.integers(9, 300))
    def take(self, owner: int, size: int) -> None:
        self.count += 1
        records = (b"%d of %d." % (self.count, owner)).ljust(size, b"%d" % (self.count % 10))
        at = self.desk.take(owner, records)
        assert at not in self.model
        self.model[at] = records
        self.group.append(at)

    @rule(passed=st.integers(0, 40))
    def durable(self, passed: int) -> None:
        self.desk.durable(self.logs._now + passed)
        self.durable_places.update(self.group)
        self.group.clear()

    @precondition(lambda self: self.plan is None)
    @rule()
    def begin_writing(self) -> None:
        self.plan = self.logs.plan()
        for write in self.plan.writes:
            assert write.make == (write.log_id not in self.files)

    @precondition(lambda self: self.plan is not None)
    @rule(done=st.integers(0, 6), gave=st.integers(0, 6))
    def end_writing(self, done: int, gave: int) -> None:
        for number, (log_id, _) in enumerate(self.plan.give_way):
            if number < gave:
                self.synced[log_id] = len(self.files[log_id])
                self.logs.gave_way(log_id)
            else:
                self.logs.did_not_give_way(log_id)
        for number, write in enumerate(self.plan.writes):
            if gave < len(self.plan.give_way) or number >= done:
                self.logs.not_written(write)
                continue
            file = self.files.setdefault(write.log_id, bytearray(BLOCK))
            assert len(file) == write.offset, "no gap, and nothing twice"
            file += bytes(write.data)
            if not write.keep:
                self.synced[write.log_id] = len(file)
            assert self.logs.wrote(write)
        self.logs.ended_writing()
        self.plan = None

    @precondition(lambda self: self.plan is None and not self.logs.writable)
    @rule()
    def checkpoint(self) -> None:
        ends = {log_id: len(file) for log_id, file in self.files.items() if self.logs.log(log_id) is not None}
        must = self.logs.must_sync(ends)
        assert {log_id for log_id, end in ends.items() if self.synced.get(log_id, BLOCK) < end} <= set(must)
        for log_id in must:
            self.synced[log_id] = ends[log_id]
            self.logs.was_synced(log_id, ends[log_id])
        whole = [log_id for log_id in self.desk.ended if (log := self.logs.log(log_id)) and log.end == log.written]
        assert self.logs.finished(whole) == whole

    @rule(owner=st.integers(1, 4))
    def closed(self, owner: int) -> None:
        self.logs.end_of(owner)

    @rule()
    def idle(self) -> None:
        self.logs.end_idle(self.logs._now)

    @invariant()
    def holds(self) -> None:
        self.logs.validate_state()
        for at, records in self.model.items():
            log_id, offset = at >> 40, at % 2**40
            if (memory := self.logs.holding(at)) is not None:
                assert memory.read(offset, len(records)) == records
            else:
                assert bytes(self.files[log_id][offset : offset + len(records)]) == records
                assert at in self.durable_places, "what is in a file was durable before"


TestLogs = Logs.TestCase
TestLogs.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
