"""Repeated requests: told apart, remembered within bounds, and never taken for new ones by mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalCorruptionError, TxId
from journal_manager.edits import RequestAnswer, RequestId, RequestTable
from journal_manager.errors import RequestForgottenError

CALLS = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 9)), max_size=40)


def table_of(calls: list[tuple[bytes, int]], **bounds: int) -> RequestTable:
    table = RequestTable(**bounds)
    for txid, (client, call) in enumerate(calls, 1):
        table.record(RequestId(client, call), RequestAnswer(TxId(txid), b"%d" % txid))
    return table


def test_a_repeated_request_gets_the_first_answer() -> None:
    table = table_of([(b"a", 1), (b"a", 2), (b"a", 1)])
    assert table.answer_to(RequestId(b"a", 1)) == RequestAnswer(TxId(1), b"1")
    assert table.answer_to(RequestId(b"a", 3)) is None
    assert table.answer_to(RequestId(b"b", 1)) is None, "another client counts by itself"


def test_what_was_dropped_is_refused_and_not_taken_for_new() -> None:
    table = table_of([(b"a", 1), (b"b", 7), (b"a", 2), (b"a", 3)], max_answers=2)
    assert len(table) == 2
    for client, call in ((b"a", 0), (b"a", 1), (b"b", 7)):
        with pytest.raises(RequestForgottenError, match=f"call {call} of client"):
            table.answer_to(RequestId(client, call))
    assert table.answer_to(RequestId(b"a", 2)) == RequestAnswer(TxId(3), b"3")
    assert table.answer_to(RequestId(b"b", 8)) is None


def test_an_answer_that_is_still_there_is_given_although_a_later_call_was_dropped() -> None:
    table = table_of([(b"a", 5), (b"a", 4), (b"b", 1)], max_answers=2)
    assert table.answer_to(RequestId(b"a", 4)) == RequestAnswer(TxId(2), b"2")
    with pytest.raises(RequestForgottenError):
        table.answer_to(RequestId(b"a", 3))


def test_the_highest_dropped_call_counts_whatever_the_order() -> None:
    table = table_of([(b"a", 5), (b"a", 4), (b"b", 1)], max_answers=1)
    with pytest.raises(RequestForgottenError):
        table.answer_to(RequestId(b"a", 5))


def test_only_so_many_silent_clients_are_remembered() -> None:
    table = table_of([(b"%d" % n, 1) for n in range(6)], max_answers=1, max_clients=3)
    assert table.answer_to(RequestId(b"0", 1)) is None and table.answer_to(RequestId(b"1", 1)) is None
    for n in (2, 3, 4):
        with pytest.raises(RequestForgottenError):
            table.answer_to(RequestId(b"%d" % n, 1))


def test_a_client_that_is_forgotten_is_not_taken_for_a_new_one() -> None:
    """A repetition behind enough other clients was carried out a second time, and nobody was told."""
    table = table_of([(b"%d" % n, 1) for n in range(6)], max_answers=1, max_clients=3)
    assert table.horizon == 5, (
        "two clients are forgotten; when the second was, the answers up to edit 5 had been dropped"
    )
    restored = RequestTable(1, 3)
    restored.restore(table.encode())
    assert (restored.horizon, restored.encode()) == (5, table.encode())
    for each in (table, restored):
        for since in (0, 1, 4):
            with pytest.raises(RequestForgottenError, match="nothing newer than edit 5 are forgotten"):
                each.answer_to(RequestId(b"0", 1), since)
        assert each.answer_to(RequestId(b"0", 1), 5) is None, "whoever began later is new"
        assert each.answer_to(RequestId(b"5", 1), 0) == RequestAnswer(TxId(6), b"6")
        assert each.answer_to(RequestId(b"5", 2), 0) is None, "one whose answer is here is known, whenever it began"
        assert each.answer_to(RequestId(b"4", 2), 0) is None, "and one of whom it is known what was dropped"
        with pytest.raises(RequestForgottenError, match="is older than"):
            each.answer_to(RequestId(b"4", 1), 6)
    assert table_of([(b"%d" % n, 1) for n in range(4)], max_answers=1, max_clients=3).horizon == 0


def test_a_client_that_began_with_edits_that_were_discarded_begins_anew() -> None:
    """Their ids are used again: what it was told when it began says nothing of what is older."""
    table = table_of([(b"a", 1)])
    assert table.answer_to(RequestId(b"b", 1), 1, 1) is None
    with pytest.raises(RequestForgottenError, match="discarded since"):
        table.answer_to(RequestId(b"b", 1), 2, 1)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_no_request_is_carried_out_twice_however_many_clients_there_are(
    steps: list[tuple[int, int]], answers: int, clients: int
) -> None:
    """Clients repeat any of their calls at any time; each says which edit was the newest when it began."""
    table, began, done = RequestTable(answers, clients), dict[int, TxId](), dict[tuple[int, int], RequestAnswer]()
    for client, call in steps:
        newest = TxId(len(done))
        since = began.setdefault(client, newest)
        request = RequestId(b"%d" % client, call)
        try:
            answer = table.answer_to(request, since, newest)
        except RequestForgottenError:
            assert since < newest, "a client that begins now is never refused"
            continue
        if answer is None:
            assert (client, call) not in done
            done[client, call] = RequestAnswer(TxId(newest + 1))
            table.record(request, done[client, call])
        else:
            assert answer == done[client, call]
        kept = RequestTable(answers, clients)
        kept.restore(table.encode())
        assert kept.encode() == table.encode()


@given(CALLS, st.integers(1, 5), st.integers(1, 3))
def test_a_restored_table_is_the_same_also_in_what_it_forgets_next(
    calls: list[tuple[bytes, int]], answers: int, clients: int
) -> None:
    table, restored = table_of(calls, max_answers=answers, max_clients=clients), RequestTable(answers, clients)
    restored.record(RequestId(b"z", 1), RequestAnswer(TxId(1)))
    restored.restore(table.encode())
    for each in (table, restored):
        each.record(RequestId(b"new", 1), RequestAnswer(TxId(99)))
    assert restored.encode() == table.encode()


@given(CALLS, st.data())
def test_a_table_cut_short_or_too_long_is_refused(calls: list[tuple[bytes, int]], data: st.DataObject) -> None:
    encoded = table_of(calls, max_answers=3).encode()
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    for damaged in (cut, encoded + b"x"):
        with pytest.raises(JournalCorruptionError, match="table of requests"):
            RequestTable().restore(damaged)


def test_a_cleared_table_knows_nothing() -> None:
    table = table_of([(b"a", 1), (b"a", 2)], max_answers=1)
    table.clear()
    assert len(table) == 0 and table.answer_to(RequestId(b"a", 1)) is None


@given(st.binary(min_size=1, max_size=255), st.integers(0, 2**64 - 1), st.binary(max_size=20))
def test_an_id_is_read_back_from_the_front_of_bytes(client: bytes, call: int, rest: bytes) -> None:
    encoded = RequestId(client, call).encode()
    assert RequestId.decode_prefix(encoded + rest) == (RequestId(client, call), len(encoded))
    for cut in range(len(encoded)):
        with pytest.raises(ValueError, match="request id"):
            RequestId.decode_prefix(encoded[:cut])


def test_what_is_no_id_or_no_bound_is_refused() -> None:
    for client, call in ((b"", 1), (bytes(256), 1), (b"a", -1), (b"a", 2**64)):
        with pytest.raises(ValueError, match="a client of 1 to 255 bytes"):
            RequestId(client, call)
    for bounds in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="at least one"):
            RequestTable(*bounds)
