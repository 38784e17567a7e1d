"""A group in memory: where its records will lie, and what is written of it."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest

from bookkeeper.codec import record
from bookkeeper.errors import InvariantError
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, padded
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from tests.bookkeeper.storage.workload import make_entry


def test_a_group_knows_the_places_of_its_records() -> None:
    entries = [make_entry(1, at, size=50 + at) for at in range(4)]
    records = [record(entry) for entry in entries]
    ends = array("q", accumulate(map(len, records)))
    group = PendingGroup(GroupBuffer(8192), 3, 5000)
    first = group.add_record(9, record(make_entry(9, 0)))
    assert first == place(3, 5000)
    size = group.size
    places = group.add_run(1, b"".join(records), ends[0], ends, 1, 4)
    assert list(places) == [place(3, 5000 + size + ends[at] - ends[0]) for at in range(3)]
    assert group.records == 4 and group.usage[1] == [ends[3] - ends[0], 3]
    assert bytes(group.record_from(5000 + size)) == b"".join(records[1:])
    assert group.holds(3, 5000) and not group.holds(3, 5000 + group.size) and not group.holds(2, 5000)
    assert group.seal(1, 0) == padded(group.size) and group.seal(1, 0) == padded(group.size)


@pytest.mark.rule("K9")
def test_records_that_were_built_in_the_group_stay_where_they_are() -> None:
    group = PendingGroup(GroupBuffer(8192), 3, 5000)
    group.add_record(9, record(make_entry(9, 0)))
    one = record(make_entry(1, 0))
    at = GROUP_HEADER + group.size
    group.buffer.view[at : at + len(one)] = one
    before = group.size
    assert list(group.add_run(1, group.buffer.view, at, array("q", [at + len(one)]), 0, 1)) == [place(3, 5000 + before)]
    assert bytes(group.record_from(5000 + before)) == one
    with pytest.raises(InvariantError):  # they were built, and something else has come since
        group.add_run(1, group.buffer.view, at, array("q", [at + len(one)]), 0, 1)
    assert group.size == before + len(one)


def test_records_are_read_from_a_group_as_from_a_log() -> None:
    group = PendingGroup(GroupBuffer(8192), 3, 5000)
    first, second = (record(make_entry(1, at)) for at in range(2))
    group.add_record(1, first)
    group.add_record(1, second)
    assert group.name == "the memory of group 0"
    assert group.read(5000 + len(first), 1 << 20) == second and group.read(5000, 4) == first[:4]


def test_what_follows_a_group_without_a_hole() -> None:
    group = PendingGroup(GroupBuffer(8192), 3, 5000)
    group.add_record(1, record(make_entry(1, 0)))
    end = 5000 + group.size
    places = [(3, end), (3, end + 1), (4, 4096), (4, 5000), (2, 4096)]
    follows = [PendingGroup(GroupBuffer(8192), *at).follows(group) for at in places]
    assert follows == [True, False, True, False, False]
