"""Whom an entry answers, and with what."""

from __future__ import annotations

import asyncio

import pytest

from segments.entries.columns import BytesColumn, RecordColumns
from segments.entries.sections import EntryBatch
from segments.position import Position
from segments.record import AppendResult
from segments.write.appends.grouping import Group
from segments.write.output.flight import OrderedGroup, batches_of, column_strings, fail_group


def a_group(*counts: int) -> tuple[Group, list[asyncio.Future[AppendResult]]]:
    group, futures = Group(1000), []
    for count in counts:
        future: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        group.items += [b"v"] * count
        group.promise(future, count)
        futures.append(future)
    return group, futures


@pytest.mark.parametrize("counts", [(1, 1, 1), (1, 3, 1)])
async def test_each_append_gets_the_positions_of_its_own_records(counts: tuple[int, ...]) -> None:
    group, futures = a_group(*counts)
    futures[-1].cancel()
    records = sum(counts)
    log = OrderedGroup(group, RecordColumns.of_values(group.items), list(range(100, 100 + records)), 40, 5)
    log.resolve(2, 7)
    slot = 0
    for future, count in zip(futures[:-1], counts, strict=False):
        last = slot + count - 1
        expected = AppendResult(Position(2, 7, slot), Position(2, 7, last), 40 + slot, 100 + last, False)
        assert future.result() == expected
        assert isinstance(future.result().position, Position)
        slot += count


async def test_whoever_no_longer_waits_takes_nothing_from_those_behind() -> None:
    group, futures = a_group(*[1] * 6)
    for gone in (0, 2, 3, 5):
        futures[gone].cancel()
    OrderedGroup(group, RecordColumns.of_gathered(group.items), None, 40, 5).resolve(2, 7)
    assert [future.result().position for future in futures if not future.cancelled()] == [
        Position(2, 7, 1),
        Position(2, 7, 4),
    ]


@pytest.mark.parametrize("counts", [(1, 1), (2, 1)])
async def test_a_group_that_fails_gives_everybody_an_error_of_its_own(counts: tuple[int, ...]) -> None:
    group, futures = a_group(*counts)
    fail_group(group, lambda: KeyError("lost"))
    errors = [future.exception() for future in futures]
    assert len({id(error) for error in errors}) == len(counts)


def test_the_table_of_batches_says_whose_records_are_whose() -> None:
    group = Group(1000)
    assert batches_of(group, 5) == []
    group.items += [b"v"] * 3
    group.of_producer("p", 1, 7, 2)
    group.items += [b"v"] * 2
    assert batches_of(group, 5) == [EntryBatch(1), EntryBatch(2, "p", 1, 7), EntryBatch(2)]


def test_the_strings_of_a_column() -> None:
    assert column_strings(BytesColumn.of([b"a", b"", b"bcd"])) == [b"a", b"", b"bcd"]
