"""The next long poll is at the bookie before it is needed, where entries come quickly."""

from __future__ import annotations

from bookkeeper.client.read.poll_ahead import QUICK_S, PendingPoll, PollAhead
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import Entry
from bookkeeper.ledger.read import Poll

B1, B2 = BookieId("b1"), BookieId("b2")


def poll(previous: int, bookie: BookieId = B1) -> Poll:
    return Poll(bookie, EntryId(previous), 1_000)


def entry(entry_id: int) -> Entry:
    return Entry(LedgerId(1), EntryId(entry_id), EntryId(entry_id - 1), 1, b"%d" % entry_id)


def test_only_an_entry_that_came_quickly_is_followed_by_a_poll_ahead() -> None:
    ahead = PollAhead()
    assert ahead.next(poll(4)) is None
    ahead.on_answered(PendingPoll(poll(4), 0.0), entry(5), QUICK_S / 2)
    assert ahead.next(poll(5)) == poll(6)
    ahead.on_answered(PendingPoll(poll(5), 0.0), entry(6), 2 * QUICK_S)
    assert ahead.next(poll(6)) is None, "slowly"
    ahead.on_answered(PendingPoll(poll(6), 0.0), entry(7), QUICK_S / 2)
    ahead.on_answered(PendingPoll(poll(7), 0.0), None, QUICK_S / 2)
    assert ahead.next(poll(7)) is None, "no entry"


def test_the_poll_ahead_is_taken_over_if_it_asks_the_same_and_has_time_left() -> None:
    ahead = PollAhead()
    for wanted, now, found in (
        (poll(6), 0.5, True),
        (poll(7), 0.5, False),
        (poll(6, B2), 0.5, False),
        (poll(6), 1.0, False),
    ):
        asked = ahead.pending = PendingPoll(poll(6), 0.0)
        assert ahead.take_over(wanted, now) is (asked if found else None)
        assert ahead.pending is None


def test_an_entry_that_came_before_it_was_waited_for_is_handed_out_once() -> None:
    ahead = PollAhead()
    assert ahead.take(6) is None
    ahead.pending = PendingPoll(poll(5), 0.0)
    ahead.on_answered_early(entry(6))
    assert ahead.take_over(poll(5), 0.0) is None
    assert ahead.take(5) is None, "it comes later"
    assert (ahead.take(6), ahead.take(6)) == (b"6", None)
    ahead.on_answered_early(entry(7))
    assert ahead.take(8) is None and ahead.take(7) is None, "a reader that has gone on does not want it"
    ahead.on_answered_early(None)
    assert ahead.take(8) is None
