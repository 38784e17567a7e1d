"""One group in the journal, many logs behind it."""

from __future__ import annotations

from itertools import count

from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, state_record
from bookkeeper.storage.journal.pending_group import GroupBuffer
from bookkeeper.storage.ledger_logs.ledger_group import LedgerGroup
from bookkeeper.storage.ledger_logs.ledger_logs import GroupPart, LedgerLogs
from tests.bookkeeper.storage.workload import make_adds


def logs_of(ended: list[int] | None = None) -> LedgerLogs:
    ids = count(1)
    told = ended if ended is not None else []
    return LedgerLogs(
        lambda shared: next(ids), told.append, log_bytes=1 << 20, buffer_bytes=1 << 20, open_max=9, idle_s=0
    )


def add_run(group: LedgerGroup, ledger_id: int, ids: list[int]) -> list[int]:
    adds = make_adds(ledger_id, ids)
    return list(group.add_run(ledger_id, adds.records, 0, adds.record_ends, 0, len(ids)))


def test_records_are_in_the_group_as_they_came_and_have_places_in_the_logs_of_their_ledgers() -> None:
    logs = logs_of()
    group = LedgerGroup(GroupBuffer(1 << 16), logs)
    size = len(make_adds(7, [0]).records)
    first, other, second = add_run(group, 7, [0, 1]), add_run(group, 8, [0]), add_run(group, 7, [2])
    assert first + second == [place(1, BLOCK + size * at) for at in range(3)]
    assert other == [place(2, BLOCK)]
    data = bytes(make_adds(7, [0, 1]).records) + bytes(make_adds(8, [0]).records) + bytes(make_adds(7, [2]).records)
    assert bytes(group.data) == data and group.records == 4
    assert group.parts == {
        1: GroupPart(BLOCK + 3 * size, {7: [3 * size, 3]}),
        2: GroupPart(BLOCK + size, {8: [size, 1]}),
    }
    memory = logs.holding(first[1])
    assert memory is not None and memory.record_from(BLOCK + size) == bytes(make_adds(7, [1]).records)


def test_what_outlives_its_ledger_goes_to_a_shared_log_and_ends_the_ledgers() -> None:
    ended: list[int] = []
    logs = logs_of(ended)
    group = LedgerGroup(GroupBuffer(1 << 16), logs)
    key = group.add_record(7, state_record(7, StateRecordKind.KEY, b"key"))
    gone = [group.add_record(at, state_record(at, StateRecordKind.DROPPED), outlives=True) for at in (7, 8)]
    assert key == place(1, BLOCK) and [each >> 40 for each in gone] == [2, 2]
    assert ended == [1] and list(group.parts[2].usage) == [7, 8]


def test_groups_follow_one_another_and_none_holds_what_the_logs_hold() -> None:
    logs = logs_of()
    before, after = (LedgerGroup(GroupBuffer(1 << 16), logs) for _ in range(2))
    (at,) = add_run(before, 7, [0])
    add_run(before, 8, [0])
    add_run(after, 7, [1])
    assert after.follows(before) and not before.follows(after)
    assert not before.holds(at >> 40, at % 2**40)


def test_a_run_may_begin_behind_others_of_the_same_bytes() -> None:
    logs = logs_of()
    group, adds = LedgerGroup(GroupBuffer(1 << 16), logs), make_adds(7, [0, 1, 2])
    begin = adds.record_ends[0]
    places = list(group.add_run(7, adds.records, begin, adds.record_ends, 1, 3))
    assert places == [place(1, BLOCK), place(1, BLOCK + adds.record_ends[1] - begin)]
    assert bytes(group.data) == bytes(adds.records)[begin:]
    size = adds.record_ends[2] - begin
    assert group.parts == {1: GroupPart(BLOCK + size, {7: [size, 2]})}
