"""Recovery, story by story. E=3 Qw=3 Qa=2 unless said."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    BookieUnavailableError,
    DigestMismatchError,
    InvariantError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    RecoveryInconclusiveError,
    UnauthorizedError,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.recovery.effects import (
    BeginRecovery,
    CloseRecovered,
    Effect,
    FenceRead,
    FindStandIns,
    ForgetPayloads,
    RecoveryDone,
    RecoveryFailed,
    RecoveryRead,
    WriteBack,
)
from bookkeeper.ledger.recovery.recovery import RecoveryState
from tests.bookkeeper.ledger.test_metadata import SPEC, bookies

B1, B2, B3, B4 = bookies("b1 b2 b3 b4")
YES, NO, UNKNOWN = Answer.POSITIVE, Answer.NEGATIVE, Answer.UNKNOWN
LOST = BookieUnavailableError("connection lost")
OPEN = LedgerMetadata.create(SPEC, (B1, B2, B3))
ONE_AT_A_TIME = RecoveryConfig(window_entries=1, hedge_ms=250)


def begun(stored: LedgerMetadata = OPEN, config: RecoveryConfig = ONE_AT_A_TIME) -> LedgerRecovery:
    recovery = LedgerRecovery(config)
    assert recovery.start(0.0) == [BeginRecovery()]
    recovery.on_begun(stored.begin_recovery(), 0.0)
    return recovery


def fence(recovery: LedgerRecovery, script: str, now: float = 0.0) -> list[Effect]:
    """``b1=5 b2=-``: b1 is fenced and says last add confirmed 5, b2 is fenced and has nothing; ``b3?``: unknown."""
    effects: list[Effect] = []
    for word in script.split():
        if word.endswith("?"):
            effects += recovery.on_fence_answer(BookieId(word[:-1]), UNKNOWN, None, now, LOST)
            continue
        bookie, lac = word.split("=")
        answer, heard = (NO, None) if lac == "-" else (YES, EntryId(int(lac)))
        effects += recovery.on_fence_answer(BookieId(bookie), answer, heard, now)
    return effects


def read(recovery: LedgerRecovery, script: str, now: float = 0.0) -> list[Effect]:
    """``7:b1=70``: b1 gives entry 7, whose length is 70; ``7:b1-``: it has none; ``7:b1?``: unknown."""
    effects: list[Effect] = []
    for word in script.split():
        entry, rest = word.split(":")
        bookie, equals, length = rest.partition("=")
        if equals:
            effects += recovery.on_read_answer(BookieId(bookie), int(entry), YES, now, int(length))
        else:
            answer = NO if rest.endswith("-") else UNKNOWN
            effects += recovery.on_read_answer(BookieId(rest[:-1]), int(entry), answer, now, error=None)
    return effects


def written(recovery: LedgerRecovery, script: str) -> list[Effect]:
    effects: list[Effect] = []
    for word in script.split():
        entry, bookie = word.split(":")
        effects += recovery.on_written(BookieId(bookie), int(entry), 0.0)
    return effects


def reads(effects: list[Effect]) -> list[tuple[str, int]]:
    return [(e.bookie, e.entry_id) for e in effects if isinstance(e, RecoveryRead)]


def of(kind: type[Effect], effects: list[Effect]) -> list[Effect]:
    return [e for e in effects if isinstance(e, kind)]


# -- beginning -----------------------------------------------------------------------------------------------


@pytest.mark.rule("R1", "R15")
def test_a_closed_ledger_is_adopted() -> None:
    recovery = LedgerRecovery()
    closed = OPEN.close(4, 50)
    assert recovery.on_begun(closed, 0.0) == [RecoveryDone(closed)]


@pytest.mark.rule("R1")
def test_recovery_does_not_begin_before_the_metadata_says_so() -> None:
    with pytest.raises(InvariantError, match="R1"):
        LedgerRecovery().on_begun(OPEN, 0.0)


@pytest.mark.rule("R3")
def test_every_bookie_of_the_last_fragment_is_fenced() -> None:
    two = OPEN.change_ensemble(5, (B1, B2, B4)).begin_recovery()
    assert LedgerRecovery().on_begun(two, 0.0) == [FenceRead(B1), FenceRead(B2), FenceRead(B4)]


@pytest.mark.rule("M8")
def test_a_store_that_is_away_is_asked_again_and_then_no_more() -> None:
    recovery = LedgerRecovery(RecoveryConfig(rounds_max=2))
    assert recovery.on_store_failed(MetadataUnavailableError(), 1.0) == [WakeAt(1.5)]
    assert recovery.on_tick(1.5) == [BeginRecovery()]
    [failed] = recovery.on_store_failed(MetadataUnavailableError(), 2.0)
    assert isinstance(failed, RecoveryFailed)
    [failed] = LedgerRecovery().on_store_failed(NoSuchLedgerError(), 0.0)
    assert isinstance(failed, RecoveryFailed)


@pytest.mark.rule("R14")
def test_what_is_written_back_behind_the_end_is_found() -> None:
    recovery = begun()
    fence(recovery, "b1=- b3=-")
    recovery.validate_state()
    assert recovery._reading is not None and recovery._writing is not None
    recovery._reading.end, recovery._writing.written, recovery._writing._length = 3, 3, 30
    with pytest.raises(InvariantError, match="R14"):
        recovery.validate_state()


# -- fencing -------------------------------------------------------------------------------------------------


@pytest.mark.rule("R2", "Q3")
def test_nothing_is_read_before_the_fence_covers_the_ensemble() -> None:
    recovery = begun()
    assert fence(recovery, "b1=-") == []
    assert fence(recovery, "b2?") == []
    assert reads(fence(recovery, "b3=-")) == [("b1", 0)]


@pytest.mark.rule("Q2", "R2")
def test_an_unknown_answer_fences_nobody_and_is_asked_again() -> None:
    recovery = begun()
    assert fence(recovery, "b1=- b2? b3?") == [WakeAt(0.5)]
    assert recovery.on_tick(0.5) == [FenceRead(B2), FenceRead(B3)]
    assert reads(fence(recovery, "b2=-")) == [("b1", 0)]


@pytest.mark.rule("R6", "V2")
def test_too_few_fences_too_often_are_inconclusive() -> None:
    recovery = begun(config=RecoveryConfig(rounds_max=2))
    fence(recovery, "b1=- b2? b3?")
    recovery.on_tick(0.5)
    [failed] = fence(recovery, "b2? b3?", 0.6)
    assert isinstance(failed, RecoveryFailed)
    assert isinstance(failed.error, RecoveryInconclusiveError)
    assert failed.error.retryable


def test_a_wrong_password_is_told_as_soon_as_too_many_have_refused_it() -> None:
    recovery = begun()
    assert recovery.on_fence_answer(B1, UNKNOWN, None, 0.0, UnauthorizedError()) == []
    [failed] = recovery.on_fence_answer(B2, UNKNOWN, None, 0.0, UnauthorizedError())
    assert isinstance(failed, RecoveryFailed)
    assert isinstance(failed.error, UnauthorizedError)


@pytest.mark.rule("R4")
def test_reading_starts_behind_the_highest_last_add_confirmed_heard() -> None:
    recovery = begun()
    effects = fence(recovery, "b1=3 b3=5")
    assert [entry for _, entry in reads(effects)] == [5, 6]  # 5 only for its length (R12)


@pytest.mark.rule("R4")
def test_earlier_fragments_are_never_read_forward() -> None:
    two = OPEN.change_ensemble(8, (B1, B2, B4))
    effects = fence(begun(two), "b1=2 b2=-")
    assert [(e.entry_id, e.fence) for e in effects if isinstance(e, RecoveryRead)] == [(7, False), (8, True)]


# -- reading -------------------------------------------------------------------------------------------------


@pytest.mark.rule("R3")
def test_every_recovery_read_fences() -> None:
    effects = fence(begun(config=RecoveryConfig()), "b1=- b2=-")
    assert all(e.fence for e in effects if isinstance(e, RecoveryRead))
    assert [entry for _, entry in reads(effects)] == [0, 1, 2, 3]


@pytest.mark.rule("R6", "Q4")
def test_absence_takes_a_covering_number_of_explicit_negatives() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    assert reads(read(recovery, "0:b1-")) == [("b2", 0), ("b3", 0)]
    assert read(recovery, "0:b1-") == []  # the same bookie again
    assert of(CloseRecovered, read(recovery, "0:b2?")) == []
    assert read(recovery, "0:b3-") == [CloseRecovered(EntryId(-1), 0, OPEN.fragments)]


@pytest.mark.rule("R6")
def test_one_good_copy_is_enough_though_others_say_no() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1-")
    effects = read(recovery, "0:b2=10")
    assert of(WriteBack, effects) == [WriteBack(b, EntryId(0), EntryId(-1), 10) for b in (B1, B2, B3)]


@pytest.mark.rule("Q2", "R6")
def test_unknown_is_never_negative_and_ends_inconclusive() -> None:
    recovery = begun(config=RecoveryConfig(rounds_max=2, window_entries=1))
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1- 0:b2?")
    assert of(RecoveryFailed, read(recovery, "0:b3?", now=1.0)) == []
    assert reads(recovery.on_tick(1.5)) == [("b2", 0), ("b3", 0)]
    read(recovery, "0:b2? 0:b3?", now=2.0)
    [failed] = of(RecoveryFailed, recovery.on_tick(2.5))
    assert isinstance(failed, RecoveryFailed)
    assert isinstance(failed.error, RecoveryInconclusiveError)
    assert recovery.state is RecoveryState.FAILED


@pytest.mark.rule("R6")
def test_a_bad_digest_is_unknown_and_the_others_are_asked() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    assert reads(recovery.on_read_answer(B1, 0, UNKNOWN, 0.0, error=DigestMismatchError())) == [("b2", 0), ("b3", 0)]
    assert of(WriteBack, read(recovery, "0:b3=10"))


@pytest.mark.rule("V2")
def test_a_hanging_bookie_is_passed_over() -> None:
    recovery = begun()
    effects = fence(recovery, "b1=- b2=-")
    assert effects[-1] == WakeAt(0.25)
    assert reads(recovery.on_tick(0.25)) == [("b2", 0), ("b3", 0)]


@pytest.mark.rule("R14")
def test_what_lies_behind_the_first_missing_entry_is_left_out() -> None:
    recovery = begun(config=RecoveryConfig())
    fence(recovery, "b1=- b2=-")
    assert of(WriteBack, read(recovery, "1:b2=20")) == []
    read(recovery, "0:b1-")
    effects = read(recovery, "0:b2-")
    assert effects == [CloseRecovered(EntryId(-1), 0, OPEN.fragments)]


# -- writing back --------------------------------------------------------------------------------------------


@pytest.mark.rule("R7", "R8")
def test_entries_are_written_back_in_order_with_the_frozen_last_add_confirmed() -> None:
    recovery = begun(config=RecoveryConfig(window_entries=4))
    fence(recovery, "b1=5 b2=-")
    assert of(WriteBack, read(recovery, "7:b2=90")) == []
    effects = of(WriteBack, read(recovery, "6:b1=80 6:b3=80 8:b3=99"))
    assert [(e.entry_id, e.lac) for e in effects if isinstance(e, WriteBack)] == [
        (n, 5) for n in (6, 7, 8) for _ in "123"
    ]


@pytest.mark.rule("R8")
def test_its_own_progress_does_not_move_the_frozen_last_add_confirmed() -> None:
    recovery = begun()
    fence(recovery, "b1=5 b2=-")
    read(recovery, "6:b1=80")
    written(recovery, "6:b1 6:b2")
    assert {e.lac for e in read(recovery, "7:b2=90") if isinstance(e, WriteBack)} == {5}


@pytest.mark.rule("R7")
def test_the_ledger_is_closed_when_all_is_on_ack_quorums() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1=10")
    assert written(recovery, "0:b1") == []
    effects = written(recovery, "0:b2")
    assert effects[0] == ForgetPayloads(EntryId(0))
    assert reads(effects) == [("b2", 1)]
    assert read(recovery, "1:b2- 1:b1-")[-1] == CloseRecovered(EntryId(0), 10, OPEN.fragments)


@pytest.mark.rule("R9", "R5")
def test_a_failing_bookie_is_replaced_privately_and_reads_stay_with_the_old_one() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1=10")
    assert recovery.on_write_failed(B3, 0, LOST, 0.0) == [FindStandIns((B3,), (B1, B2, B3))]
    assert recovery.on_stand_ins({B3: B4}, 0.0) == [WriteBack(B4, EntryId(0), EntryId(-1), 10)]
    effects = written(recovery, "0:b4 0:b1")
    assert reads(effects) == [("b2", 1)]
    assert set(reads(read(recovery, "1:b2?"))) == {("b3", 1), ("b1", 1)}
    [close] = of(CloseRecovered, read(recovery, "1:b3- 1:b1-"))
    assert isinstance(close, CloseRecovered)
    assert [f.ensemble for f in close.fragments] == [(B1, B2, B4)]


@pytest.mark.rule("R9")
def test_who_failed_once_and_kept_its_place_is_not_replaced_when_another_fails() -> None:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1=10")
    recovery.on_write_failed(B3, 0, LOST, 0.0)
    recovery.on_stand_ins({}, 0.0)
    assert of(FindStandIns, recovery.on_write_failed(B2, 0, LOST, 0.0)) == [FindStandIns((B2,), (B1, B2, B3))]


@pytest.mark.rule("R7", "R9")
def test_the_ack_of_a_replaced_bookie_counts_no_more() -> None:
    recovery = begun(config=RecoveryConfig(window_entries=4))
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1=10 1:b2=20")
    written(recovery, "0:b3")
    recovery.on_write_failed(B3, 1, LOST, 0.0)
    recovery.on_stand_ins({B3: B4}, 0.0)
    assert of(ForgetPayloads, written(recovery, "0:b1")) == []
    assert of(ForgetPayloads, written(recovery, "0:b4")) == [ForgetPayloads(EntryId(0))]


@pytest.mark.rule("V2")
def test_without_a_stand_in_the_same_bookie_is_tried_again() -> None:
    recovery = begun(config=RecoveryConfig(window_entries=1, rounds_max=2))
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1=10")
    recovery.on_write_failed(B3, 0, LOST, 0.0)
    recovery.on_stand_ins({}, 0.0)
    recovery.on_write_failed(B2, 0, LOST, 0.0)
    recovery.on_stand_ins({}, 0.0)
    written(recovery, "0:b1")
    assert set(of(WriteBack, recovery.on_tick(0.5))) == {WriteBack(b, EntryId(0), EntryId(-1), 10) for b in (B2, B3)}
    for bookie in (B2, B3):
        recovery.on_write_failed(bookie, 0, LOST, 0.6)
        recovery.on_stand_ins({}, 0.6)
    [failed] = of(RecoveryFailed, recovery.on_tick(1.1))
    assert isinstance(failed, RecoveryFailed)
    assert isinstance(failed.error, RecoveryInconclusiveError)


# -- closing -------------------------------------------------------------------------------------------------


@pytest.mark.rule("R12")
def test_the_length_is_read_from_the_last_entry_if_nothing_is_written_back() -> None:
    recovery = begun()
    effects = fence(recovery, "b1=5 b2=-")
    assert ("b3", 5) in reads(effects)
    assert of(CloseRecovered, read(recovery, "6:b1- 6:b2- 6:b3-")) == []
    assert read(recovery, "5:b3=55") == [CloseRecovered(EntryId(5), 55, OPEN.fragments)]


@pytest.mark.rule("R12")
def test_the_length_may_stand_in_an_earlier_fragment() -> None:
    two = OPEN.change_ensemble(8, (B1, B2, B4))
    recovery = begun(two)
    fence(recovery, "b1=- b2=-")
    read(recovery, "8:b4- 8:b1- 8:b2-")
    assert read(recovery, "7:b2=70") == [CloseRecovered(EntryId(7), 70, two.fragments)]


@pytest.mark.rule("R12", "R6")
def test_without_that_length_it_is_inconclusive() -> None:
    recovery = begun(config=RecoveryConfig(rounds_max=1, window_entries=1))
    fence(recovery, "b1=5 b2=-")
    read(recovery, "6:b1- 6:b2- 6:b3-")
    assert of(CloseRecovered, read(recovery, "5:b3- 5:b1- 5:b2-")) == []
    assert of(RecoveryFailed, recovery.on_tick(0.5))


@pytest.mark.rule("R12", "V2")
def test_a_length_that_nobody_gives_holds_up_nothing_when_a_later_entry_is_written_back() -> None:
    recovery = begun(config=RecoveryConfig(rounds_max=1, window_entries=1))
    fence(recovery, "b1=5 b2=-")
    read(recovery, "5:b3? 5:b1? 5:b2?")
    assert of(RecoveryFailed, recovery.on_tick(0.5)) == []
    read(recovery, "6:b1=66", now=0.5)
    written(recovery, "6:b1 6:b2")
    assert read(recovery, "7:b2- 7:b1- 7:b3-", now=0.5)[-1] == CloseRecovered(EntryId(6), 66, OPEN.fragments)


@pytest.mark.rule("R12")
def test_a_length_that_comes_late_does_not_replace_a_later_one() -> None:
    recovery = begun()
    fence(recovery, "b1=5 b2=-")
    read(recovery, "6:b1=66")
    written(recovery, "6:b1 6:b2")
    read(recovery, "5:b3=55")
    [close] = of(CloseRecovered, read(recovery, "7:b2- 7:b1- 7:b3-"))
    assert close == CloseRecovered(EntryId(6), 66, OPEN.fragments)


def closing() -> LedgerRecovery:
    recovery = begun()
    fence(recovery, "b1=- b2=-")
    read(recovery, "0:b1- 0:b2-")
    assert recovery.state is RecoveryState.CLOSING
    return recovery


@pytest.mark.rule("R10", "R15")
def test_a_lost_race_adopts_the_end_or_starts_again() -> None:
    closed = OPEN.begin_recovery().close_recovered(3, 40)
    assert closing().on_close_lost(closed, 0.0) == [RecoveryDone(closed)]
    swapped = OPEN.change_ensemble(5, (B1, B2, B4)).begin_recovery()
    assert closing().on_close_lost(swapped, 0.0) == [FenceRead(B1), FenceRead(B2), FenceRead(B4)]


@pytest.mark.rule("R10")
def test_it_does_not_start_again_for_ever() -> None:
    recovery = closing()
    for _ in range(5):
        recovery.on_close_lost(OPEN.begin_recovery(), 0.0)
        fence(recovery, "b1=- b2=-")
        read(recovery, "0:b1- 0:b2-")
    assert of(RecoveryFailed, recovery.on_close_lost(OPEN.begin_recovery(), 0.0))


@pytest.mark.rule("M8")
def test_a_close_of_unknown_outcome_is_asked_again() -> None:
    recovery = closing()
    recovery.on_store_failed(MetadataUnavailableError(), 1.0)
    assert recovery.on_tick(1.5) == [CloseRecovered(EntryId(-1), 0, OPEN.fragments)]
    done = OPEN.begin_recovery().close_recovered(-1, 0)
    assert recovery.on_close_lost(done, 1.5) == [RecoveryDone(done)]  # it was our own


@pytest.mark.rule("R13")
def test_nothing_happens_after_the_end() -> None:
    recovery = closing()
    done = OPEN.begin_recovery().close_recovered(-1, 0)
    assert recovery.on_closed(done, 0.0) == [RecoveryDone(done)]
    assert fence(recovery, "b1=9") == []
    assert read(recovery, "0:b1=9") == []
    assert written(recovery, "0:b1") == []
    assert recovery.on_write_failed(B1, 0, LOST, 0.0) == []
    assert recovery.on_stand_ins({}, 0.0) == []
    assert recovery.on_closed(done, 0.0) == []
    assert recovery.on_close_lost(done, 0.0) == []
    assert recovery.on_tick(9.0) == []
    assert recovery.on_begun(done, 0.0) == []
    assert recovery.on_store_failed(LOST, 0.0) == []
    assert repr(recovery) == "<done, lac=-1, written back -1, end 0>"


@pytest.mark.rule("R5", "Q1")
def test_a_striped_ledger_is_read_by_write_sets() -> None:
    spec = QuorumSpec(ensemble_size=4, write_quorum=2, ack_quorum=2)
    recovery = begun(LedgerMetadata.create(spec, (B1, B2, B3, B4)), RecoveryConfig())
    assert fence(recovery, "b1=- b2=-") == []
    effects = fence(recovery, "b3=-")
    assert reads(effects) == [("b1", 0), ("b2", 1), ("b3", 2), ("b4", 3)]
