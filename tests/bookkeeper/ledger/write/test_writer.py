"""The writing half of a ledger, story by story."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    BookieFailedError,
    BookieUnavailableError,
    InvariantError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    Outcome,
    UnauthorizedError,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.ensemble.replan import replan
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write import ChangeEnsemble, ChangeFailure, Encode, LedgerWriter, PublishLac
from bookkeeper.ledger.write.effects import (
    CloseMetadata,
    Confirm,
    Effect,
    FailAdds,
    MarkMissing,
    Release,
    SendAdds,
    WatchIncarnation,
)
from bookkeeper.ledger.write.writer_end import WriterState
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3, B4, B5 = bookies("b1 b2 b3 b4 b5")
SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
LOST = BookieUnavailableError("connection lost")


@pytest.fixture
def writer() -> LedgerWriter:
    return LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), WriterConfig(add_timeout_ms=30_000))


def add(writer: LedgerWriter, count: int = 1, size: int = 10, now: float = 0.0) -> list[Effect]:
    return writer.add([size] * count, now)[1]


def acks(writer: LedgerWriter, script: str, now: float = 0.0) -> list[Effect]:
    """``0:b1 0-4:b2``: b1 acknowledges entry 0, then b2 the entries 0 to 4."""
    effects: list[Effect] = []
    for word in script.split():
        ids, bookie = word.split(":")
        first, _, last = ids.partition("-")
        effects += writer.on_acks(BookieId(bookie), int(first), int(last or first) - int(first) + 1, now)
    return effects


def of(kind: type[Effect], effects: list[Effect]) -> list[Effect]:
    return [e for e in effects if isinstance(e, kind)]


def confirmed(effects: list[Effect]) -> list[int]:
    return [e for c in effects if isinstance(c, Confirm) for e in range(c.first, c.first + c.count)]


def change(writer: LedgerWriter, first: int, **stand_ins: str) -> list[Effect]:
    """The change that was asked for is committed."""
    members = {BookieId(old): BookieId(new) for old, new in stand_ins.items()}
    return writer.on_ensemble_changed(replan(writer.metadata, first, members), 0.0)


# -- adding --------------------------------------------------------------------------------------------------


@pytest.mark.rule("W8")
def test_a_run_is_encoded_once_and_sent_to_every_bookie(writer: LedgerWriter) -> None:
    assert writer.add([5, 6], 0.0) == (
        0,
        [
            Encode(EntryId(0), 2, EntryId(-1), 0),
            SendAdds(B1, EntryId(0), 2, 0),
            SendAdds(B2, EntryId(0), 2, 1),
            SendAdds(B3, EntryId(0), 2, 2),
            WakeAt(0.5),
        ],
    )
    assert writer.add([7], 0.0)[1][0] == Encode(EntryId(2), 1, EntryId(-1), 11)
    assert writer.add([], 0.0) == (3, [])


@pytest.mark.rule("W1")
def test_an_entry_is_confirmed_by_its_ack_quorum(writer: LedgerWriter) -> None:
    add(writer)
    assert acks(writer, "0:b1 0:b1") == []
    assert acks(writer, "0:b3") == [
        Confirm(EntryId(0), 1),
        Release(EntryId(0)),
        PublishLac(EntryId(0), (B1, B2, B3)),
    ]
    assert acks(writer, "0:b2") == []


@pytest.mark.rule("W2")
def test_a_later_entry_waits_for_the_earlier_one(writer: LedgerWriter) -> None:
    add(writer, 2)
    assert acks(writer, "1:b1 1:b2 0:b1") == []
    assert confirmed(acks(writer, "0:b2")) == [0, 1]


@pytest.mark.rule("W1")
def test_quorums_of_different_pairs_are_seen_through_gaps(writer: LedgerWriter) -> None:
    add(writer, 6)
    assert confirmed(acks(writer, "0-1:b1 4-5:b1 0-3:b2 2-5:b3")) == [0, 1, 2, 3, 4, 5]


@pytest.mark.rule("W3")
def test_packets_carry_the_last_add_confirmed_of_their_making(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "0-1:b1 0-1:b2")
    assert add(writer)[0] == Encode(EntryId(3), 1, EntryId(1), 30)


@pytest.mark.rule("W1")
def test_acks_for_what_was_never_sent_count_for_nothing(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0-9:b1 0-9:b2")
    add(writer)
    assert confirmed(acks(writer, "1:b1")) == []
    assert confirmed(acks(writer, "1:b2")) == [1]


@pytest.mark.rule("W1")
def test_striped_acks_come_with_holes() -> None:
    spec = QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2)
    writer = LedgerWriter(LedgerMetadata.create(spec, (B1, B2, B3)))
    sends = of(SendAdds, add(writer, 4))
    assert [s.bookie for s in sends if isinstance(s, SendAdds)] == [B1, B2, B3]
    # entry 0: b1 b2, 1: b2 b3, 2: b3 b1, 3: b1 b2
    assert confirmed(acks(writer, "0:b1 2-3:b1")) == []
    assert confirmed(acks(writer, "1:b2 0:b2")) == [0]
    assert confirmed(acks(writer, "1-2:b3")) == [1, 2]
    assert confirmed(acks(writer, "3:b2")) == [3]


def test_a_bookie_outside_the_write_set_is_sent_nothing() -> None:
    spec = QuorumSpec(ensemble_size=3, write_quorum=1, ack_quorum=1)
    writer = LedgerWriter(LedgerMetadata.create(spec, (B1, B2, B3)))
    assert of(SendAdds, add(writer)) == [SendAdds(B1, EntryId(0), 1, 0)]


@pytest.mark.rule("W12")
def test_callers_must_wait_while_too_much_is_pending() -> None:
    config = WriterConfig(pending_bytes_max=100, pending_entries_max=5)
    writer = LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), config)
    add(writer, 1, size=99)
    waits = [writer.must_wait]
    add(writer, 1, size=1)
    waits.append(writer.must_wait)
    assert (waits, writer.progress.pending_bytes) == ([False, True], 100)
    acks(writer, "0:b1 0:b2")
    assert (writer.progress.pending_bytes, writer.confirmed_length, writer.must_wait) == (1, 99, False)
    add(writer, 4, size=0)
    assert writer.must_wait
    acks(writer, "1-5:b1 1-5:b2")
    add(writer, 4, size=0)
    assert not writer.must_wait, "what was acknowledged before does not count"


# -- a bookie fails ------------------------------------------------------------------------------------------


@pytest.mark.rule("W5")
def test_a_failed_bookie_is_replaced_from_the_first_unconfirmed_entry(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2")
    add(writer)
    assert writer.on_bookie_failed(B2, LOST, 0.0) == [
        WatchIncarnation(B2),
        ChangeEnsemble((B2,), (B1, B3), EntryId(1), 1),
    ]
    assert change(writer, 1, b2="b4") == [SendAdds(B4, EntryId(1), 1, 1)]
    assert writer.metadata.last_fragment.first_entry == 1


@pytest.mark.rule("W4")
def test_nothing_is_confirmed_while_a_change_is_in_flight(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert acks(writer, "0:b1 0:b3") == []
    assert writer.progress.last_add_confirmed == -1
    assert confirmed(change(writer, 0, b2="b4")) == [0]


@pytest.mark.rule("W4", "W1")
def test_the_ack_of_a_replaced_bookie_counts_no_more(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b2")
    writer.on_bookie_failed(B2, LOST, 0.0)
    acks(writer, "0:b1")
    assert confirmed(change(writer, 0, b2="b4")) == []
    assert confirmed(acks(writer, "0:b2")) == []
    assert confirmed(acks(writer, "0:b4")) == [0]


@pytest.mark.rule("W1", "W4")
def test_a_stand_in_that_is_not_committed_yet_acknowledges_nothing(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1")
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert acks(writer, "0:b4") == []
    change(writer, 0, b2="b4")
    assert writer.progress.last_add_confirmed == -1


@pytest.mark.rule("W4")
def test_one_change_at_a_time_and_then_the_next(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.on_bookie_failed(B3, LOST, 0.0) == [WatchIncarnation(B3)]
    assert change(writer, 0, b2="b4") == [
        SendAdds(B4, EntryId(0), 1, 1),
        ChangeEnsemble((B3,), (B1, B4), EntryId(0), 2),
    ]


def test_adds_go_on_during_a_change_without_the_failed(writer: LedgerWriter) -> None:
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert [s.bookie for s in add(writer) if isinstance(s, SendAdds)] == [B1, B3]
    assert change(writer, 0, b2="b4") == [SendAdds(B4, EntryId(0), 1, 1)]


@pytest.mark.rule("W5")
def test_a_fragment_that_begins_elsewhere_stops_the_writer(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "0-1:b1 0-1:b2")
    writer.on_bookie_failed(B3, LOST, 0.0)
    with pytest.raises(InvariantError, match="W5"):
        change(writer, 1, b3="b4")


def test_failures_of_strangers_are_nothing_to_us(writer: LedgerWriter) -> None:
    assert writer.on_bookie_failed(B5, LOST, 0.0) == []
    assert writer.on_bookie_failed(B5, LedgerFencedError(), 0.0) == []
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.on_bookie_failed(B2, LOST, 0.0) == []


# -- no spare ------------------------------------------------------------------------------------------------


@pytest.mark.rule("W13")
def test_without_a_spare_appends_go_on_while_an_ack_quorum_answers(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b3")
    add(writer)
    acks(writer, "1:b1 1:b3")
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0) == []
    assert writer.failed_bookies == (B2,)
    add(writer)
    assert confirmed(acks(writer, "2:b1 2:b3")) == [2]
    assert confirmed(acks(writer, "2:b2")) == []


@pytest.mark.rule("W13", "W4")
@pytest.mark.parametrize("reason", [ChangeFailure.NO_SPARE, ChangeFailure.STORE_AWAY])
def test_confirms_are_held_for_the_change_and_not_for_a_spare(writer: LedgerWriter, reason: ChangeFailure) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    acks(writer, "0:b1 0:b3")
    assert confirmed(writer.on_change_failed(reason, 0.0)) == [0]


@pytest.mark.rule("W13")
def test_the_ensemble_is_changed_when_a_spare_appears(writer: LedgerWriter) -> None:
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    add(writer)
    acks(writer, "0:b1 0:b3")
    assert writer.on_spares_changed(0.0) == [ChangeEnsemble((B2,), (B1, B3), EntryId(1), 2)]
    assert change(writer, 1, b2="b4") == [MarkMissing(B2, EntryId(0), EntryId(0))]
    assert writer.on_spares_changed(0.0) == []


@pytest.mark.rule("W13")
def test_a_change_is_tried_again_after_a_while(writer: LedgerWriter) -> None:
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.on_change_failed(ChangeFailure.STORE_AWAY, 5.0) == [WakeAt(6.0)]
    assert of(ChangeEnsemble, writer.on_tick(5.9)) == []
    assert of(ChangeEnsemble, writer.on_tick(6.0)) == [ChangeEnsemble((B2,), (B1, B3), EntryId(0), 2)]


@pytest.mark.rule("W13", "V1", "W6")
def test_with_too_few_bookies_the_deadline_ends_the_handle(writer: LedgerWriter) -> None:
    add(writer, 2, now=1.0)
    acks(writer, "0:b1", now=1.0)
    writer.on_bookie_failed(B3, BookieUnavailableError("its certificate has expired"), 1.0)
    writer.on_bookie_failed(B2, LOST, 1.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 1.0)
    assert of(FailAdds, writer.on_tick(30.9)) == []
    [failed] = of(FailAdds, writer.on_tick(31.0))
    assert isinstance(failed, FailAdds)
    assert isinstance(failed.error, AddTimeoutError)
    assert failed.error.outcome is Outcome.UNKNOWN
    assert failed.error.__cause__ is LOST
    assert f"failed bookies: b2 ({LOST}), b3 (its certificate has expired)" in str(failed.error)
    assert (failed.first, failed.count) == (0, 2)
    assert acks(writer, "0-1:b1 0-1:b2 0-1:b3") == []
    with pytest.raises(AddTimeoutError):
        add(writer)
    assert writer.close(31.0) == []  # another change is in flight
    assert CloseMetadata(EntryId(-1), 0) in writer.on_change_failed(ChangeFailure.NO_SPARE, 31.0)


# -- it comes back -------------------------------------------------------------------------------------------


@pytest.mark.rule("W14", "W10b")
def test_a_bookie_that_returns_gets_entries_again_and_what_it_missed_is_noted(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "0-2:b1 0-2:b3 0:b2")
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    add(writer, 2)
    acks(writer, "3:b1 3:b3")
    assert writer.on_bookie_returned(B2, writer.metadata, 0.0) == [
        MarkMissing(B2, EntryId(1), EntryId(3)),
        SendAdds(B2, EntryId(4), 1, 1),
    ]
    assert confirmed(acks(writer, "4:b2 4:b1")) == [4]
    assert SendAdds(B2, EntryId(5), 1, 1) in add(writer)
    assert writer.failed_bookies == ()


@pytest.mark.rule("W10b")
def test_a_bookie_counts_no_ack_before_its_life_was_checked(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    assert acks(writer, "0:b2 0:b1") == []
    assert writer.on_bookie_returned(B2, writer.metadata, 0.0) == [SendAdds(B2, EntryId(0), 1, 1)]
    assert confirmed(acks(writer, "0:b2")) == [0]


@pytest.mark.rule("W10b")
@pytest.mark.parametrize("closed", [False, True])
def test_a_life_check_that_finds_the_ledger_ended_ends_the_handle(writer: LedgerWriter, closed: bool) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    stored = writer.metadata.begin_recovery()
    stored = stored.close_recovered(-1, 0) if closed else stored
    [failed] = of(FailAdds, writer.on_bookie_returned(B2, stored, 0.0))
    assert isinstance(failed, FailAdds)
    assert type(failed.error) is (LedgerClosedError if closed else LedgerFencedError)


@pytest.mark.rule("W10b")
def test_a_bookie_that_is_not_in_the_stored_fragment_stays_out(writer: LedgerWriter) -> None:
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    elsewhere = replan(writer.metadata, 0, {B2: B5})
    assert writer.on_bookie_returned(B2, elsewhere, 0.0) == [WatchIncarnation(B2)]
    assert writer.failed_bookies == (B2,)


@pytest.mark.rule("W10b", "W14")
def test_a_return_during_a_change_waits_for_its_end(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.on_bookie_returned(B2, writer.metadata, 0.0) == []
    assert writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0) == [SendAdds(B2, EntryId(0), 1, 1)]
    assert writer.failed_bookies == ()


@pytest.mark.rule("W10b")
def test_lost_again_during_the_change_means_to_check_again(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    writer.on_bookie_returned(B2, writer.metadata, 0.0)
    assert writer.on_bookie_failed(B2, LOST, 0.0) == [WatchIncarnation(B2)]
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    assert writer.failed_bookies == (B2,)


# -- it hangs ------------------------------------------------------------------------------------------------


@pytest.mark.rule("W15")
def test_a_bookie_that_stands_still_while_others_progress_counts_as_failed(writer: LedgerWriter) -> None:
    add(writer, now=0.0)
    acks(writer, "0:b1 0:b3", now=0.01)
    assert of(WatchIncarnation, writer.on_tick(0.5)) == []  # suspected
    effects = writer.on_tick(0.625)
    assert effects[:2] == [WatchIncarnation(B2), ChangeEnsemble((B2,), (B1, B3), EntryId(1), 1)]


@pytest.mark.rule("W15")
def test_a_process_that_was_paused_reads_its_mail_first(writer: LedgerWriter) -> None:
    add(writer, now=0.0)
    acks(writer, "0:b1 0:b3", now=0.01)
    writer.on_tick(90.0)
    acks(writer, "0:b2", now=90.0)
    assert writer.on_tick(90.2) == []
    assert writer.failed_bookies == ()


@pytest.mark.rule("W15")
def test_an_ack_clears_a_suspicion_so_a_later_pause_begins_with_reading_the_mail(writer: LedgerWriter) -> None:
    add(writer, 2, now=0.0)
    acks(writer, "0:b1 0:b3", now=0.01)
    writer.on_tick(0.5)  # b2 is suspected
    acks(writer, "0:b2", now=0.51)
    acks(writer, "1:b1 1:b3", now=0.52)
    assert of(WatchIncarnation, writer.on_tick(90.0)) == [], (
        "the process stood still: perhaps b2's reply waits to be read"
    )
    assert of(WatchIncarnation, writer.on_tick(90.2)) == [WatchIncarnation(B2)]


@pytest.mark.rule("W15")
def test_when_nobody_progresses_nobody_is_blamed(writer: LedgerWriter) -> None:
    add(writer, now=0.0)
    for tick in range(1, 20):
        assert of(WatchIncarnation, writer.on_tick(tick / 2)) == []


@pytest.mark.rule("W15")
def test_while_a_bookie_owes_an_answer_the_writer_looks_four_times_within_its_limit(writer: LedgerWriter) -> None:
    add(writer)
    assert writer.on_tick(0.5) == [WakeAt(0.625)]
    acks(writer, "0:b1 0:b2 0:b3", now=0.6)
    assert writer.on_tick(0.625) == []


@pytest.mark.rule("W15")
def test_an_idle_bookie_is_not_blamed_for_what_it_was_not_sent(writer: LedgerWriter) -> None:
    add(writer, now=0.0)
    acks(writer, "0:b1 0:b2 0:b3", now=0.1)
    add(writer, now=100.0)
    acks(writer, "1:b1 1:b3", now=100.1)
    assert of(WatchIncarnation, writer.on_tick(100.2)) == []
    assert of(WatchIncarnation, writer.on_tick(100.3)) == []


@pytest.mark.rule("W15")
def test_a_bookie_that_trails_too_far_counts_as_failed() -> None:
    config = WriterConfig(trail_bytes_max=128_000)
    writer = LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), config)
    effects: list[Effect] = []
    for n in range(200):
        if of(WatchIncarnation, effects):
            break
        add(writer, 1, size=1000)
        effects = acks(writer, f"{n}:b1 {n}:b3")
    assert 127 <= n <= 129
    assert of(WatchIncarnation, effects) == [WatchIncarnation(B2)]
    assert of(ChangeEnsemble, effects)


# -- the end -------------------------------------------------------------------------------------------------


@pytest.mark.rule("W6", "W9")
def test_one_fenced_reply_ends_the_handle_for_good(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0:b1 0:b2")
    effects = writer.on_bookie_failed(B3, LedgerFencedError(), 0.0)
    assert [type(e) for e in effects] == [FailAdds, Release]
    assert isinstance(effects[0], FailAdds)
    assert (effects[0].first, effects[0].count) == (1, 1)
    assert acks(writer, "1:b1 1:b2") == []
    assert writer.on_bookie_failed(B1, LOST, 0.0) == []
    assert writer.on_fenced(0.0) == []
    assert writer.on_tick(99.0) == []
    assert writer.on_spares_changed(0.0) == []
    assert writer.on_bookie_returned(B1, writer.metadata, 0.0) == []
    with pytest.raises(LedgerFencedError):
        add(writer)
    with pytest.raises(LedgerFencedError):
        writer.close(0.0)
    assert writer.progress.last_add_confirmed == 0


@pytest.mark.rule("W6")
@pytest.mark.parametrize(
    ("reason", "error"),
    [
        (ChangeFailure.CLOSED, LedgerClosedError),
        (ChangeFailure.IN_RECOVERY, LedgerFencedError),
        (ChangeFailure.DELETED, NoSuchLedgerError),
    ],
)
def test_a_change_that_finds_the_ledger_ended_ends_the_handle(
    writer: LedgerWriter, reason: ChangeFailure, error: type[Exception]
) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    acks(writer, "0:b1 0:b3")
    [failed] = of(FailAdds, writer.on_change_failed(reason, 0.0))
    assert isinstance(failed, FailAdds)
    assert type(failed.error) is error
    assert writer.progress.last_add_confirmed == -1


@pytest.mark.rule("W6")
def test_a_change_that_comes_back_with_an_ended_ledger_ends_the_handle(writer: LedgerWriter) -> None:
    add(writer)
    writer.on_bookie_failed(B2, LOST, 0.0)
    stored = writer.metadata.begin_recovery()
    assert of(FailAdds, writer.on_ensemble_changed(stored, 0.0))
    assert writer.metadata == stored
    assert writer.on_ensemble_changed(writer.metadata, 0.0) == []


def test_after_a_change_a_writer_for_whom_nothing_waits_is_not_woken(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    assert writer.progress.last_add_confirmed == 0 and writer.on_tick(0.5) == []
    writer.on_bookie_failed(B2, LOST, 0.5)
    assert of(WakeAt, change(writer, 1, b2="b4")) == []


@pytest.mark.rule("W6")
def test_a_wrong_password_is_no_fault_of_the_bookie(writer: LedgerWriter) -> None:
    add(writer)
    [failed] = of(FailAdds, writer.on_bookie_failed(B1, UnauthorizedError(), 0.0))
    assert isinstance(failed, FailAdds)
    assert isinstance(failed.error, UnauthorizedError)


@pytest.mark.rule("R13", "W7")
def test_closing_fails_what_is_pending_and_closes_at_the_last_add_confirmed(writer: LedgerWriter) -> None:
    add(writer, 3, size=7)
    acks(writer, "0-1:b1 0-1:b2")
    effects = writer.close(0.0)
    assert [type(e) for e in effects] == [FailAdds, Release, CloseMetadata]
    assert effects[1:] == [Release(EntryId(2)), CloseMetadata(EntryId(1), 14)]
    assert writer.close(0.0) == []
    assert acks(writer, "2:b1 2:b2") == []
    with pytest.raises(LedgerClosedError):
        add(writer)
    stored = writer.metadata.close(1, 14)
    writer.on_closed(stored, 0.0)
    assert (writer.state, writer.metadata) == (WriterState.CLOSED, stored)
    assert writer.close(0.0) == []


@pytest.mark.rule("R13")
def test_an_empty_ledger_closes_at_minus_one(writer: LedgerWriter) -> None:
    assert writer.close(0.0) == [CloseMetadata(EntryId(-1), 0)]


@pytest.mark.rule("R13")
def test_closing_waits_for_the_change_in_flight(writer: LedgerWriter) -> None:
    writer.on_bookie_failed(B2, LOST, 0.0)
    assert writer.close(0.0) == []
    assert change(writer, 0, b2="b4") == [CloseMetadata(EntryId(-1), 0)]


@pytest.mark.rule("R13", "W14")
def test_a_stand_in_of_a_writer_that_closes_is_sent_nothing_and_named_in_the_end(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0:b1 0:b2")
    writer.on_bookie_failed(B3, LOST, 0.0)
    writer.close(0.0)
    effects = change(writer, 1, b3="b4")
    assert effects == [MarkMissing(B3, EntryId(0), EntryId(0)), CloseMetadata(EntryId(0), 10)]
    assert (writer.metadata.last_fragment.ensemble, writer.failed_bookies) == ((B1, B2, B4), ())


@pytest.mark.rule("W14", "R13")
def test_at_close_what_the_failed_missed_is_noted(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0:b2")
    writer.on_bookie_failed(B2, LOST, 0.0)
    acks(writer, "0-1:b1 0-1:b3")
    writer.on_change_failed(ChangeFailure.NO_SPARE, 0.0)
    assert writer.close(0.0) == [MarkMissing(B2, EntryId(1), EntryId(1)), CloseMetadata(EntryId(1), 20)]
    assert writer.on_bookie_returned(B2, writer.metadata, 1.0) == [], "it is not used again"


@pytest.mark.rule("W14")
def test_what_a_live_bookie_has_not_acknowledged_when_the_ledger_is_closed_is_noted(writer: LedgerWriter) -> None:
    """Nobody looked at its answers any more: a copy that never came was found by the weekly check of all ledgers."""
    add(writer, 4)
    acks(writer, "0-3:b1 0-3:b2 0:b3")
    assert writer.close(0.0) == [CloseMetadata(EntryId(3), 40)]
    assert acks(writer, "1:b3 3:b3") == [], "they come while the metadata are written"
    assert writer.on_closed(writer.metadata.close(3, 40), 0.0) == [MarkMissing(B3, EntryId(2), EntryId(2))]


@pytest.mark.rule("R13")
def test_a_close_that_finds_a_recovery_reports_it_and_one_that_finds_the_store_away_may_be_tried_again(
    writer: LedgerWriter,
) -> None:
    writer.close(0.0)
    writer.on_close_failed(MetadataUnavailableError(), 0.0)
    assert writer.close(0.0) == [CloseMetadata(EntryId(-1), 0)]
    writer.on_close_failed(LedgerFencedError(), 0.0)
    with pytest.raises(LedgerFencedError):
        writer.close(0.0)


@pytest.mark.rule("R11")
def test_a_ledger_that_ended_below_what_was_acknowledged_is_an_alarm(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0-1:b1 0-1:b2")
    writer.close(0.0)
    with pytest.raises(InvariantError, match="R11"):
        writer.on_closed(writer.metadata.close(0, 10), 0.0)


# -- last add confirmed --------------------------------------------------------------------------------------


@pytest.mark.rule("W16")
def test_an_idle_writer_publishes_once_what_no_add_will_carry(writer: LedgerWriter) -> None:
    add(writer)
    assert writer.lac_to_publish() is None
    assert of(PublishLac, acks(writer, "0:b1 0:b2"))
    assert writer.lac_to_publish() == 0
    writer.on_lac_published(EntryId(0))
    assert writer.lac_to_publish() is None
    add(writer)
    acks(writer, "1:b1 1:b2")
    add(writer)  # carries it
    assert writer.lac_to_publish() is None


@pytest.mark.rule("W16")
def test_a_last_add_confirmed_is_the_last_word_until_there_is_another_entry(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2")
    words = [writer.is_final_lac(EntryId(0))]
    add(writer)
    words.append(writer.is_final_lac(EntryId(0)))
    acks(writer, "1:b1 1:b2")
    words += [writer.is_final_lac(EntryId(0)), writer.is_final_lac(EntryId(1))]
    writer.close(0.0)
    assert [*words, writer.is_final_lac(EntryId(1))] == [True, False, False, True, False]


# -- habits --------------------------------------------------------------------------------------------------


def test_a_writer_can_be_printed(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "1:b1")
    writer.on_bookie_failed(B2, BookieFailedError("I/O"), 0.0)
    assert repr(writer) == "<open, changing, lac=-1, next=3, b1<0 1..1 b2!<0 b3<0>"


def test_stand_ins_that_fail_at_once_are_not_tried_as_fast_as_the_store_can_write(writer: LedgerWriter) -> None:
    add(writer, 3)
    changes, now, stand_in = 0, 0.0, B3
    effects = writer.on_bookie_failed(B3, LOST, now)
    while any(isinstance(effect, ChangeEnsemble) for effect in effects) and changes < 50:
        changes += 1
        stand_in = B5 if stand_in == B4 else B4
        writer.on_ensemble_changed(writer.metadata.change_ensemble(0, (B1, B2, stand_in)), now)
        effects = writer.on_bookie_failed(stand_in, LOST, now)
    assert changes == 3
    assert any(isinstance(effect, WakeAt) for effect in effects) or writer.on_tick(0.2)
    assert not any(isinstance(effect, ChangeEnsemble) for effect in writer.on_tick(0.5))
    assert acks(writer, "0-2:b1 0-2:b2", now=0.6), "meanwhile appends are confirmed by the others"
    assert any(isinstance(effect, ChangeEnsemble) for effect in writer.on_tick(1.1))


@pytest.mark.rule("W15", "W14", "W8")
def test_what_a_bookie_had_no_room_for_is_sent_again_as_far_as_it_is_kept(writer: LedgerWriter) -> None:
    add(writer, 10)
    acks(writer, "0-9:b1 0-3:b2 6-9:b3")
    assert writer.progress.last_add_confirmed == 9 or writer.progress.last_add_confirmed == 3
    again = writer.send_again(B3, 0, 6, kept_from=2)
    assert again == [MarkMissing(B3, EntryId(0), EntryId(1)), SendAdds(B3, EntryId(2), 4, 2)]
    assert writer.failed_bookies == (), "it is alive"
    acks(writer, "2-5:b3")
    assert writer.progress.last_add_confirmed == 9
    assert writer.send_again(B3, 0, 2, kept_from=10) == [], "noted once"
    writer.on_bookie_failed(B3, LOST, 1.0)
    assert writer.send_again(B3, 0, 6, kept_from=0) == []


@pytest.mark.rule("W8", "W1")
def test_a_packet_that_is_pending_is_never_given_up(writer: LedgerWriter) -> None:
    add(writer, 3)
    with pytest.raises(InvariantError, match="W8"):
        writer.send_again(B1, 0, 3, kept_from=3)


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("W3", lambda writer: setattr(writer.progress, "last_acknowledged", EntryId(-1))),
        ("W11", lambda writer: setattr(writer.progress, "last_add_confirmed", EntryId(-1))),
        ("W12", lambda writer: setattr(writer.progress, "pending_bytes", 19)),
        ("W2", lambda writer: setattr(writer.progress, "next_entry", EntryId(4))),
        ("W2", lambda writer: writer.progress.pending.clear()),
        ("W6", lambda writer: setattr(writer._end, "error", LOST)),
        ("W4", lambda writer: [writer._ensemble.by_bookie[b].acks.add(1, 2) for b in (B1, B2)]),
        ("W1", lambda writer: writer._ensemble.by_bookie[B1].acks.add(1, 9)),
        ("W1", lambda writer: setattr(writer, "metadata", LedgerMetadata.create(SPEC, (B1, B2, B4)))),
        ("V1", lambda writer: setattr(writer._alarm, "at", None)),
        ("W11", lambda writer: setattr(writer._end, "waits_for_force", True)),
    ],
)
def test_a_state_that_contradicts_itself_is_found(
    writer: LedgerWriter, rule: str, spoil: Callable[[LedgerWriter], object]
) -> None:
    add(writer, 3)
    acks(writer, "0:b1 0:b2")
    writer.validate_state()
    spoil(writer)
    with pytest.raises(InvariantError, match=rule):
        writer.validate_state()


def test_every_step_of_these_tests_is_followed_by_a_look_at_the_state(writer: LedgerWriter) -> None:
    writer.progress.pending_bytes += 1
    with pytest.raises(InvariantError, match="W12"):
        add(writer)
