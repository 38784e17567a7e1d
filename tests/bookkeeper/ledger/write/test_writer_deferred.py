"""The writing half with deferred sync, story by story."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    BookieFailedError,
    BookKeeperError,
    ClientClosedError,
    LedgerClosedError,
    LedgerFencedError,
    RequestTimedOutError,
    TooManyRequestsError,
    UnauthorizedError,
)
from bookkeeper.ids import EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.write import ChangeEnsemble, Encode, LedgerWriter, PublishLac
from bookkeeper.ledger.write.effects import (
    CloseFailed,
    CloseMetadata,
    Effect,
    FailAdds,
    ForceDone,
    ForceFailed,
    Release,
    ResumeCallers,
    SendAdds,
    SendForce,
)
from bookkeeper.ledger.write.force_rounds import RETRY_S
from bookkeeper.ledger.write.writer_end import WriterState
from tests.bookkeeper.ledger.write.test_writer import B1, B2, B3, LOST, SPEC, acks, add, confirmed, of

CONFIG = WriterConfig(deferred_sync=True, add_timeout_ms=10_000, force_timeout_ms=5_000, trail_bytes_max=1280)


@pytest.fixture
def writer() -> LedgerWriter:
    return LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), CONFIG)


def force(writer: LedgerWriter, now: float = 0.0) -> list[Effect]:
    return writer.force(now)[1]


def forced(writer: LedgerWriter, number: int, now: float = 0.0) -> list[Effect]:
    """All bookies answer."""
    return [effect for bookie in (B1, B2, B3) for effect in writer.on_forced(bookie, number, now)]


@pytest.mark.rule("W11", "W3")
def test_acks_confirm_to_callers_and_move_nothing_that_others_see(writer: LedgerWriter) -> None:
    add(writer, 3)
    assert confirmed(acks(writer, "0-2:b1 0-2:b2 0-2:b3")) == [0, 1, 2]
    assert (writer.progress.last_acknowledged, writer.progress.last_add_confirmed) == (2, -1)
    assert (writer.progress.acknowledged_length, writer.confirmed_length, writer.progress.pending_bytes) == (30, 0, 0)
    assert writer.lac_to_publish() is None
    assert of(Encode, add(writer)) == [Encode(3, 1, -1, 30)]  # type: ignore[arg-type]


@pytest.mark.rule("W11")
def test_the_last_add_confirmed_moves_when_every_bookie_has_forced(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "0-2:b1 0-2:b2 0-2:b3")
    assert of(SendForce, force(writer)) == [SendForce(B1, 1), SendForce(B2, 1), SendForce(B3, 1)]
    assert writer.on_forced(B1, 1, 0.0) == writer.on_forced(B2, 1, 0.0) == []
    assert writer.progress.last_add_confirmed == -1
    assert writer.on_forced(B3, 1, 0.0) == [ForceDone(1), PublishLac(writer.progress.last_add_confirmed, (B1, B2, B3))]
    assert (writer.progress.last_add_confirmed, writer.confirmed_length, writer.lac_to_publish()) == (2, 30, 2)
    assert of(Encode, add(writer)) == [Encode(3, 1, 2, 30)]  # type: ignore[arg-type]


@pytest.mark.rule("W11")
def test_a_force_waits_for_the_ack_of_the_slowest_bookie_before_it_asks_it(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0-1:b1 0-1:b2 0:b3")
    assert of(SendForce, force(writer)) == [SendForce(B1, 1), SendForce(B2, 1)]
    writer.on_forced(B1, 1, 0.0)
    writer.on_forced(B2, 1, 0.0)
    assert acks(writer, "1:b3") == [SendForce(B3, 1)]
    assert of(ForceDone, writer.on_forced(B3, 1, 0.0)) == [ForceDone(1)]
    assert writer.progress.last_add_confirmed == 1


@pytest.mark.rule("W11")
def test_the_packet_that_a_bookie_refused_is_kept_although_the_others_have_acknowledged(writer: LedgerWriter) -> None:
    add(writer, 4)
    assert of(Release, acks(writer, "0-3:b1 0-1:b3 0-3:b2")) == [Release(-1), Release(1)]  # type: ignore[arg-type]
    assert of(SendAdds, writer.send_again(B3, 2, 2, kept_from=2)) == [SendAdds(B3, 2, 2, 2)]  # type: ignore[arg-type]


@pytest.mark.rule("W11")
@pytest.mark.parametrize("pending", [0, 1])
def test_a_failed_bookie_ends_the_handle_and_never_changes_the_ensemble(writer: LedgerWriter, pending: int) -> None:
    add(writer, 2)
    acks(writer, "0-1:b1 0-1:b2")
    force(writer)
    add(writer, pending)
    effects = writer.on_bookie_failed(B2, LOST, 1.0)
    assert of(ChangeEnsemble, effects) == []
    assert [(e.first, e.count) for e in effects if isinstance(e, FailAdds)] == [(2, 1)] * pending
    assert [e.number for e in effects if isinstance(e, ForceFailed)] == [1]
    assert isinstance(writer.error, BookieFailedError)
    assert writer.error.__cause__ is LOST
    assert writer.progress.last_add_confirmed == -1
    assert writer.on_forced(B1, 1, 1.0) == acks(writer, "0-1:b3") == []
    with pytest.raises(BookieFailedError, match="no ensemble change"):
        writer.force(1.0)


@pytest.mark.rule("W9", "W11")
def test_a_fenced_reply_ends_the_handle_and_its_forces(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    force(writer)
    (failed,) = of(ForceFailed, writer.on_bookie_failed(B1, LedgerFencedError("fenced"), 0.0))
    assert isinstance(failed, ForceFailed)
    assert isinstance(failed.error, LedgerFencedError)
    with pytest.raises(LedgerFencedError):
        writer.close(0.0, force=False)


@pytest.mark.rule("W11")
def test_a_refused_force_fails_and_the_handle_goes_on(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    force(writer)
    busy = TooManyRequestsError("busy")
    assert of(ForceFailed, writer.on_force_failed(B2, 1, busy, 0.0)) == [ForceFailed(1, busy)]
    assert writer.progress.last_add_confirmed == -1
    assert len(of(SendForce, force(writer))) == 3
    forced(writer, 2)
    assert writer.progress.last_add_confirmed == 0


@pytest.mark.rule("W11")
def test_a_force_without_an_answer_fails_at_its_time_limit(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    wakes = [e.time for e in force(writer, 1.0) if isinstance(e, WakeAt)]
    assert 6.0 in wakes or min(wakes, default=10) <= 6.0
    assert of(ForceFailed, writer.on_tick(5.999)) == []
    (failed,) = of(ForceFailed, writer.on_tick(6.0))
    assert isinstance(failed, ForceFailed)
    assert isinstance(failed.error, RequestTimedOutError)
    assert writer.state is WriterState.OPEN


@pytest.mark.rule("W11", "W15")
def test_a_bookie_that_stands_still_ends_the_handle_only_after_the_time_of_an_append(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2", now=1.0)
    for now in (1.5, 2.0, 9.0):
        assert writer.on_tick(now) and writer.error is None
    writer.on_tick(10.1)
    writer.on_tick(10.2)
    assert isinstance(writer.error, BookieFailedError)
    assert "b3" in str(writer.error)


@pytest.mark.rule("W11", "W12")
def test_a_bookie_that_trails_holds_up_the_callers_instead_of_failing(writer: LedgerWriter) -> None:
    add(writer, 128)
    waits = []
    for entry in range(128):
        acks(writer, f"{entry}:b1 {entry}:b2")
        waits.append(writer.must_wait)
    assert waits == [False] * 127 + [True]
    assert acks(writer, "0:b3") == [ResumeCallers()]
    assert (writer.must_wait, writer.error) == (False, None)


@pytest.mark.rule("W11", "W12")
def test_a_bookie_that_trails_and_then_stands_still_does_not_hold_up_the_callers_for_ever(writer: LedgerWriter) -> None:
    add(writer, 300)
    for entry in range(300):
        acks(writer, f"{entry}:b1 {entry}:b2", now=1.0)
    acks(writer, "0:b3", now=1.5)  # the last who moved on, and nobody else can: the callers wait
    assert writer.must_wait
    for now in (2.0, 11.4):
        writer.on_tick(now)
        assert writer.error is None
    writer.on_tick(11.6)
    writer.on_tick(11.7)
    assert isinstance(writer.error, BookieFailedError)
    assert "b3" in str(writer.error)


@pytest.mark.rule("W11", "V1")
def test_an_append_without_a_quorum_ends_the_handle_at_its_deadline(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1")
    writer.on_tick(10.0)
    assert isinstance(writer.error, AddTimeoutError)


@pytest.mark.rule("R13", "W11")
def test_closing_fails_what_is_pending_forces_what_is_acknowledged_and_closes_there(writer: LedgerWriter) -> None:
    add(writer, 3)
    acks(writer, "0-1:b1 0-1:b2 0:b3")
    effects = writer.close(0.0)
    assert [type(e) for e in effects[:3]] == [FailAdds, Release, SendForce]
    assert effects[1] == Release(EntryId(0)), "b3 may still have no room for entry 1"
    assert of(SendAdds, writer.send_again(B3, 1, 2, kept_from=1)) == [SendAdds(B3, EntryId(1), 1, 2)]
    assert of(SendForce, effects) == [SendForce(B1, 1), SendForce(B2, 1)]
    with pytest.raises(LedgerClosedError):
        add(writer)
    with pytest.raises(LedgerClosedError):
        writer.force(0.0)
    assert acks(writer, "1:b3") == [SendForce(B3, 1)]
    assert confirmed(acks(writer, "2:b1 2:b2 2:b3")) == []
    assert writer.close(0.0) == []
    assert forced(writer, 1) == [ForceDone(1), CloseMetadata(writer.progress.last_acknowledged, 20)]
    assert (writer.progress.last_add_confirmed, writer.progress.last_acknowledged) == (1, 1)


@pytest.mark.rule("R13", "W11")
def test_closing_without_force_ends_below_what_was_not_forced(writer: LedgerWriter) -> None:
    add(writer, 2)
    acks(writer, "0-1:b1 0-1:b2 0-1:b3")
    forced(writer, writer.force(0.0)[0])
    add(writer, 2)
    acks(writer, "2-3:b1 2-3:b2 2-3:b3")
    number = writer.force(0.0)[0]
    effects = writer.close(0.0, force=False)
    assert [e.number for e in effects if isinstance(e, ForceFailed)] == [number]
    assert of(CloseMetadata, effects) == [CloseMetadata(writer.progress.last_add_confirmed, 20)]
    assert writer.progress.last_add_confirmed == 1


def test_closing_when_everything_is_forced_asks_nobody(writer: LedgerWriter) -> None:
    assert writer.close(0.0) == [CloseMetadata(writer.progress.last_add_confirmed, 0)]


@pytest.mark.rule("R13", "W11")
@pytest.mark.parametrize("how", ["lost", "silent", "refused"])
def test_a_close_that_cannot_force_fails_and_only_one_without_force_may_follow(writer: LedgerWriter, how: str) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2")
    writer.close(0.0)
    if how == "lost":
        effects = writer.on_bookie_failed(B3, LOST, 0.1)
    elif how == "silent":
        effects = writer.on_tick(5.0)
    else:
        effects = writer.on_force_failed(B1, 1, BookieFailedError("its disk failed"), 0.1)
    assert len(of(CloseFailed, effects)) == 1
    assert of(CloseMetadata, effects) == []
    assert writer.state is WriterState.FAILED
    with pytest.raises(type(writer.error) if writer.error else Exception):
        writer.close(6.0)
    assert of(CloseMetadata, writer.close(6.0, force=False)) == [CloseMetadata(writer.progress.last_add_confirmed, 0)]


@pytest.mark.rule("W9", "R13", "W11")
def test_a_fence_during_the_force_of_a_close_is_told_as_that(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2")
    writer.close(0.0)
    (failed,) = of(CloseFailed, writer.on_bookie_failed(B3, LedgerFencedError("fenced"), 0.1))
    assert isinstance(failed, CloseFailed)
    assert isinstance(failed.error, LedgerFencedError)


@pytest.mark.rule("W11")
@pytest.mark.parametrize(
    ("error", "told"), [(LOST, BookieFailedError), (UnauthorizedError("wrong password"), UnauthorizedError)]
)
def test_what_a_bookie_failed_of_during_the_force_of_a_close_is_told(
    writer: LedgerWriter, error: BookKeeperError, told: type[BookKeeperError]
) -> None:
    """A lost bookie may have taken acknowledged entries with it, and the error says what to do; a refused password
    is told as it is."""
    add(writer)
    acks(writer, "0:b1 0:b2")
    writer.close(0.0)
    (failed,) = of(CloseFailed, writer.on_bookie_failed(B3, error, 0.1))
    assert isinstance(failed, CloseFailed)
    assert type(failed.error) is told


@pytest.mark.rule("W11")
def test_on_a_plain_ledger_force_asks_all_bookies_and_moves_nothing() -> None:
    writer = LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)))
    add(writer)
    acks(writer, "0:b1 0:b2")
    assert of(SendForce, force(writer)) == [SendForce(B1, 1), SendForce(B2, 1)]
    assert of(SendForce, acks(writer, "0:b3")) == [SendForce(B3, 1)]
    assert forced(writer, 1) == [ForceDone(1)]
    assert (writer.progress.last_add_confirmed, writer.confirmed_length) == (0, 10)


@pytest.mark.rule("W11")
def test_a_close_asks_a_bookie_again_that_had_no_room_for_its_force(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    assert of(SendForce, writer.close(0.0)) == [SendForce(B1, 1), SendForce(B2, 1), SendForce(B3, 1)]
    assert writer.on_force_failed(B2, 1, TooManyRequestsError(), 1.0) == [SendForce(B2, 1, RETRY_S)]
    assert of(CloseMetadata, forced(writer, 1)) == [CloseMetadata(0, 10)]  # type: ignore[arg-type]
    assert writer.on_force_failed(B2, 1, TooManyRequestsError(), 2.0) == [], "the round is over"


@pytest.mark.rule("W11")
def test_a_force_without_a_close_fails_where_there_is_no_room(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    force(writer)
    error = TooManyRequestsError()
    assert writer.on_force_failed(B2, 1, error, 1.0) == [ForceFailed(1, error)]


@pytest.mark.rule("R13")
def test_a_close_may_follow_one_that_failed_for_a_while(writer: LedgerWriter) -> None:
    add(writer)
    acks(writer, "0:b1 0:b2 0:b3")
    writer.close(0.0)
    failed = RequestTimedOutError()
    writer.on_force_failed(B2, 1, failed, 1.0)
    assert failed.retryable
    assert writer.may_close_again(failed, force=True)
    assert writer.may_close_again(BookieFailedError(), force=BookieFailedError().retryable)
    assert writer.may_close_again(LedgerFencedError(), force=False), "what is not forced is given up"
    assert not writer.may_close_again(LedgerFencedError(), force=True)
    assert not writer.may_close_again(ClientClosedError(), force=False), "the handle was let go of"
    assert not writer.may_close_again(None, force=False)
    assert not writer.may_close_again(OSError(), force=False)
