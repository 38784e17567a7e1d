"""Replies to adds find their streams."""

from __future__ import annotations

import pytest

from bookkeeper import wire
from bookkeeper.codec import ReplyRun
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.replies.deliveries import AnswerStream, StreamLost
from bookkeeper.net.replies.stream_table import StreamTable
from bookkeeper.wire import Dialect, Operation, Status
from tests.bookkeeper.net.replies.waiters import LEDGER, Stream, header
from tests.bookkeeper.validated import validated

Checked = validated(StreamTable)


def run(stream: Stream, dialect: Dialect, first: int, count: int, status: Status = Status.OK) -> ReplyRun:
    return ReplyRun(stream.stream_id if dialect is Dialect.V3 else -1, stream.ledger_id, first, count, int(status))


@pytest.mark.parametrize("dialect", Dialect)
def test_runs_of_one_stream_that_follow_each_other_are_delivered_together(dialect: Dialect) -> None:
    table, a, b, gone = Checked(dialect), Stream(1, 7), Stream(2, 8), Stream(3, 9)
    table.open(a)
    table.open(b)
    some = [
        run(a, dialect, 0, 3),
        run(a, dialect, 3, 1, Status.IO_ERROR),
        run(gone, dialect, 0, 5),
        run(b, dialect, 0, 2),
        run(a, dialect, 4, 2),
    ]
    assert table.on_runs(some) == [
        (a, [(0, 3, Status.OK), (3, 1, Status.IO_ERROR)]),
        (b, [(0, 2, Status.OK)]),
        (a, [(4, 2, Status.OK)]),
    ]
    table.close(a)
    assert table.on_runs(some) == [(b, [(0, 2, Status.OK)])]


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("status", [Status.OK, Status.FENCED])
def test_many_runs_that_are_alike_are_delivered_as_those_that_are_not(dialect: Dialect, status: Status) -> None:
    table, a, gone = Checked(dialect), Stream(1, 7), Stream(2, 8)
    table.open(a)
    alike = [run(a, dialect, first, 3, status) for first in range(0, 24, 6)]
    expected = [(first, 3, status) for first in range(0, 24, 6)]
    assert table.on_runs(alike) == [(a, expected)]
    assert table.on_runs([run(gone, dialect, first, 3, status) for first in range(4)]) == []
    odd = run(a, dialect, 24, 1, Status.IO_ERROR)
    assert table.on_runs([*alike, odd]) == [(a, [*expected, (24, 1, Status.IO_ERROR)])]
    assert table.on_runs([*alike, run(gone, dialect, 0, 1, status)]) == [(a, expected)]


@pytest.mark.parametrize(("dialect", "second"), [(Dialect.V3, Stream(1, 8)), (Dialect.V2, Stream(2, 7))])
def test_two_streams_of_one_name_are_refused(dialect: Dialect, second: Stream) -> None:
    table, first = Checked(dialect), Stream(1, 7)
    table.open(first)
    with pytest.raises(ValueError, match="already"):
        table.open(second)
    table.close(second)
    assert table.on_runs([run(first, dialect, 0, 1)]) == [(first, [(0, 1, Status.OK)])], "it closed another one"


@pytest.mark.rule("B13")
def test_only_a_reply_that_names_its_entry_says_that_it_is_stored() -> None:
    table, stream = Checked(Dialect.V3), Stream(3, LEDGER)
    table.open(stream)
    add = header(Dialect.V3, Operation.ADD, (3 << 40) + 5)

    def heard(reply: wire.Reply) -> list[object]:
        return [delivery[1:] for delivery in table.on_single(add, reply)]

    assert heard(wire.AddReply(Status.OK, LEDGER, EntryId(5))) == [([(5, 1, Status.OK)],)]
    assert heard(wire.AddReply(Status.OK, LEDGER, EntryId(6))) == []
    assert heard(wire.AddReply(Status.OK, LedgerId(LEDGER + 1), EntryId(5))) == []
    assert heard(wire.BareReply(Status.OK)) == []
    assert heard(wire.BareReply(Status.TOO_MANY_REQUESTS)) == [([(5, 1, Status.TOO_MANY_REQUESTS)],)]


def test_on_v2_a_single_reply_names_its_stream_by_its_ledger() -> None:
    table, stream = Checked(Dialect.V2), Stream(3, LEDGER)
    table.open(stream)
    add = header(Dialect.V2, Operation.ADD)
    assert table.on_single(add, wire.AddReply(Status.OK, LEDGER, EntryId(5))) == [
        AnswerStream(stream, [(5, 1, Status.OK)])
    ]
    assert table.on_single(add, wire.BareReply(Status.IO_ERROR)) == []


@pytest.mark.rule("V1")
def test_a_loss_is_told_to_every_stream_once() -> None:
    table, streams = Checked(Dialect.V3), [Stream(1, 7), Stream(2, 7)]
    for stream in streams:
        table.open(stream)
    assert table.on_lost() == [StreamLost(stream) for stream in streams]
    assert table.on_lost() == []
