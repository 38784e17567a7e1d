"""Reading: who is asked next, and what the caller is told. E=3 Qw=3 Qa=2 unless said."""

from __future__ import annotations

import pytest

from bookkeeper.errors import (
    BookieUnavailableError,
    BookKeeperError,
    DataMissingError,
    DigestMismatchError,
    MetadataUnavailableError,
    NoSuchEntryError,
    NoSuchLedgerError,
    RequestTimedOutError,
    SessionExpiredError,
)
from bookkeeper.ids import EntryId
from bookkeeper.ledger.config import ReadConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.read import FragmentReader
from bookkeeper.ledger.read.reader import DeliverEntries, Effect, FailRead, RefreshMetadata, ReportCorrupt, SendRead
from tests.bookkeeper.ledger.test_metadata import CLOSED, bookies
from tests.bookkeeper.validated import validated

B1, B2, B3 = bookies("b1 b2 b3")
Reader = validated(FragmentReader)
LOST = BookieUnavailableError("gone")


def reading(first: int = 0, count: int = 1, *, unconfirmed: bool = False) -> FragmentReader:
    reader = Reader(CLOSED, first, count, unconfirmed=unconfirmed, config=ReadConfig(rounds_max=1))
    reader.start(0.0)
    return reader


def failure(effects: list[Effect]) -> BookKeeperError:
    [failed] = [e for e in effects if isinstance(e, FailRead)]
    return failed.error


def test_the_preferred_bookie_is_asked_for_the_whole_run() -> None:
    reader = Reader(CLOSED, 0, 4, order=(B3, B1))
    assert reader.start(0.0) == [SendRead(B3, EntryId(0), 4), WakeAt(0.5)]
    assert reader.on_entries(B3, 0, 4, 0.0) == [DeliverEntries(B3, EntryId(0), 4)]


def test_a_short_answer_goes_on_with_the_same_bookie() -> None:
    reader = reading(0, 4)
    assert reader.on_entries(B1, 0, 3, 0.0) == [
        DeliverEntries(B1, EntryId(0), 3),
        SendRead(B1, EntryId(3), 1),
        WakeAt(0.5),
    ]
    assert reader.on_entries(B1, 0, 3, 0.0) == []  # the same once more
    assert reader.on_entries(B1, 3, 9, 0.0) == [DeliverEntries(B1, EntryId(3), 1)]


@pytest.mark.rule("L1")
def test_whoever_fails_the_next_is_asked() -> None:
    reader = reading()
    assert reader.on_failed(B1, 0, NoSuchEntryError(), 0.0)[0] == SendRead(B2, EntryId(0), 1)
    assert reader.on_failed(B2, 0, LOST, 0.0)[0] == SendRead(B3, EntryId(0), 1)
    assert reader.on_entries(B3, 0, 1, 0.0) == [DeliverEntries(B3, EntryId(0), 1)]


@pytest.mark.rule("L1", "L7")
def test_who_did_not_give_one_entry_is_asked_for_the_next() -> None:
    reader = reading(0, 2)
    reader.on_failed(B1, 0, NoSuchEntryError(), 0.0)
    assert reader.on_entries(B2, 0, 1, 0.0)[1] == SendRead(B2, EntryId(1), 1)
    reader.on_failed(B2, 1, LOST, 0.0)
    assert reader.on_failed(B3, 1, LOST, 0.0)[0] == SendRead(B1, EntryId(1), 1)
    assert reader.on_entries(B1, 1, 1, 0.0) == [DeliverEntries(B1, EntryId(1), 1)]


@pytest.mark.rule("L1")
def test_an_entry_that_may_exist_ends_in_the_most_telling_transient_error() -> None:
    reader = reading()
    reader.on_failed(B1, 0, NoSuchEntryError(), 0.0)
    reader.on_failed(B2, 0, LOST, 0.0)
    assert reader.on_failed(B3, 0, RequestTimedOutError(), 0.0) == [RefreshMetadata()]
    assert isinstance(failure(reader.on_metadata(CLOSED, 0.0)), RequestTimedOutError)


@pytest.mark.rule("L5")
def test_a_bad_copy_is_reported_and_the_others_are_asked() -> None:
    reader = reading()
    effects = reader.on_failed(B1, 0, DigestMismatchError(), 0.0)
    assert effects[:2] == [ReportCorrupt(B1, EntryId(0)), SendRead(B2, EntryId(0), 1)]


@pytest.mark.rule("L7")
def test_no_from_everyone_means_to_look_again_and_then_an_alarm() -> None:
    reader = reading()
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    assert reader.on_failed(B3, 0, NoSuchLedgerError(), 0.0) == [RefreshMetadata()]
    mended = CLOSED.swap_bookie(0, B1, bookies("b9")[0])
    assert reader.on_metadata(mended, 0.0)[0] == SendRead(bookies("b9")[0], EntryId(0), 1)
    for bookie in bookies("b9 b2"):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    assert isinstance(failure(reader.on_failed(B3, 0, NoSuchEntryError(), 0.0)), DataMissingError)


@pytest.mark.rule("L7")
def test_if_the_ledger_is_gone_meanwhile_that_is_what_the_caller_hears() -> None:
    reader = reading()
    for bookie in (B1, B2, B3):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    assert isinstance(failure(reader.on_metadata_failed(NoSuchLedgerError(), 0.0)), NoSuchLedgerError)


@pytest.mark.rule("L4")
def test_unconfirmed_entries_may_be_absent() -> None:
    reader = reading(unconfirmed=True)
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    [failed] = reader.on_failed(B3, 0, NoSuchEntryError(), 0.0)
    assert isinstance(failed, FailRead) and isinstance(failed.error, NoSuchEntryError)
    assert not failed.is_absent, "nobody said that it is confirmed"


@pytest.mark.rule("L3", "Q4")
@pytest.mark.parametrize("denials", [1, 2])
def test_an_entry_is_absent_when_no_ack_quorum_can_have_it(denials: int) -> None:
    reader = reading()
    errors = [NoSuchEntryError()] * denials + [LOST] * (3 - denials)
    failed: list[FailRead] = []
    for _ in range(20):
        for bookie, error in zip((B1, B2, B3), errors, strict=True):
            effects = reader.on_failed(bookie, 0, error, 0.0)
            if RefreshMetadata() in effects:
                effects = reader.on_metadata(CLOSED, 0.0)
            failed += [e for e in effects if isinstance(e, FailRead)]
    assert [f.is_absent for f in failed] == [denials == 2]


def test_a_slow_bookie_gets_company_and_the_first_answer_wins() -> None:
    reader = reading()
    assert reader.on_tick(0.4) == []
    assert reader.on_tick(0.5) == [SendRead(B2, EntryId(0), 1), WakeAt(1.0)]
    assert reader.on_entries(B1, 0, 1, 0.6) == [DeliverEntries(B1, EntryId(0), 1)]
    assert reader.on_entries(B2, 0, 1, 0.7) == []
    assert reader.on_tick(1.0) == []


def test_unknown_answers_are_asked_again_as_often_as_configured() -> None:
    reader = Reader(CLOSED, 0, config=ReadConfig(rounds_max=2))
    reader.start(0.0)
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, LOST, 0.0)
    assert reader.on_failed(B3, 0, LOST, 0.0) == [RefreshMetadata()]
    assert reader.on_metadata(CLOSED, 0.0)[0] == SendRead(B1, EntryId(0), 1)
    assert repr(reader) == "<asking 0..0, asked ['b1']>"
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, LOST, 0.0)
    assert failure(reader.on_failed(B3, 0, LOST, 0.0)) is LOST


@pytest.mark.rule("L7")
def test_when_nobody_answers_those_are_asked_who_are_named_by_now() -> None:
    """A reader that looked at metadata only after an explicit no went on asking bookies that repair had replaced and
    an operator had stopped: silence never sent it to where the entries are."""
    reader = reading()
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, LOST, 0.0)
    assert reader.on_failed(B3, 0, LOST, 0.0) == [RefreshMetadata()]
    moved = CLOSED
    for old, new in zip((B1, B2, B3), bookies("b7 b8 b9"), strict=True):
        moved = moved.swap_bookie(0, old, new)
    assert reader.on_metadata(moved, 0.0)[0] == SendRead(bookies("b7")[0], EntryId(0), 1)
    for bookie in bookies("b7 b8"):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    assert reader.on_failed(bookies("b9")[0], 0, NoSuchEntryError(), 0.0) == [RefreshMetadata()]


@pytest.mark.rule("L1", "L7")
@pytest.mark.parametrize("away", [MetadataUnavailableError(), SessionExpiredError()])
def test_a_store_that_is_away_too_keeps_nobody_from_asking_the_bookies_again(away: BookKeeperError) -> None:
    reader = Reader(CLOSED, 0, config=ReadConfig(rounds_max=2))
    reader.start(0.0)
    for bookie in (B1, B2, B3):
        reader.on_failed(bookie, 0, LOST, 0.0)
    assert reader.on_metadata_failed(away, 0.0)[0] == SendRead(B1, EntryId(0), 1)
    assert reader.on_entries(B1, 0, 1, 0.0) == [DeliverEntries(B1, EntryId(0), 1)]


@pytest.mark.rule("L7")
def test_a_no_before_and_a_no_after_a_look_are_no_full_round() -> None:
    """Missing data is an alarm: it takes a no from everybody, a look at metadata, and a no from everybody again."""
    reader = Reader(CLOSED, 0, config=ReadConfig(rounds_max=2))
    reader.start(0.0)
    for bookie in (B1, B2):
        reader.on_failed(bookie, 0, NoSuchEntryError(), 0.0)
    reader.on_failed(B3, 0, LOST, 0.0)
    assert reader.on_metadata(CLOSED, 0.0)[0] == SendRead(B3, EntryId(0), 1)
    assert reader.on_failed(B3, 0, NoSuchEntryError(), 0.0) == [RefreshMetadata()]
    assert reader.on_metadata(CLOSED, 0.0)[0] == SendRead(B1, EntryId(0), 1)


def test_a_run_may_end_early_once_it_has_so_many_bytes() -> None:
    reader = Reader(CLOSED, 0, 6, config=ReadConfig(rounds_max=1), bytes_max=100)
    reader.start(0.0)
    found, asked, _ = reader.on_entries(B1, 0, 2, 0.0, 99)
    assert (found, asked) == (DeliverEntries(B1, EntryId(0), 2), SendRead(B1, EntryId(2), 4))
    assert not reader.done
    assert reader.on_entries(B1, 2, 1, 0.0, 1) == [DeliverEntries(B1, EntryId(2), 1)]
    assert (reader.done, reader.first) == (True, 3)
    assert reader.on_entries(B1, 3, 1, 0.0, 1) == []
