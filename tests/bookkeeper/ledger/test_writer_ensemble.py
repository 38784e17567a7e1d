"""The ensemble of a writer; its stories with adds are in test_writer.py."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieFailedError
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.writer import ChangeEnsemble, Forced, LedgerWriter, SendForce, WatchIncarnation, WriterConfig
from tests.bookkeeper.ledger.test_writer import B1, B2, B3, B4, LOST, SPEC, acks, add, change, of


def writer() -> LedgerWriter:
    return LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)))


@pytest.mark.rule("W5", "W10b")
def test_a_failed_bookie_is_watched_and_a_stand_in_is_asked_for() -> None:
    machine = writer()
    add(machine)
    acks(machine, "0:b1 0:b2")
    effects = machine.on_bookie_failed(B3, LOST, 1.0)
    assert of(WatchIncarnation, effects) == [WatchIncarnation(B3)]
    (wanted,) = of(ChangeEnsemble, effects)
    assert isinstance(wanted, ChangeEnsemble)
    assert (wanted.failed, wanted.keep, wanted.first_entry) == ((B3,), (B1, B2), 1)
    assert (machine.failed_bookies, machine.is_changing) == ((B3,), True)


@pytest.mark.rule("W11")
def test_a_force_that_is_under_way_asks_the_stand_in_too() -> None:
    machine = writer()
    add(machine)
    acks(machine, "0:b1 0:b2")
    number, effects = machine.force(0.0)
    assert of(SendForce, effects) == [SendForce(B1, number), SendForce(B2, number)]
    machine.on_forced(B1, number, 0.0)
    machine.on_forced(B2, number, 0.0)
    machine.on_bookie_failed(B3, LOST, 0.0)
    assert of(SendForce, change(machine, 1, b3="b4")) == [SendForce(B4, number)]
    assert of(Forced, machine.on_forced(B4, number, 0.0)) == [Forced(number)]


@pytest.mark.rule("W11")
def test_with_deferred_sync_there_is_no_change_also_when_nothing_is_in_flight() -> None:
    machine = LedgerWriter(LedgerMetadata.create(SPEC, (B1, B2, B3)), WriterConfig(deferred_sync=True))
    assert of(ChangeEnsemble, machine.on_bookie_failed(B3, LOST, 0.0)) == []
    assert isinstance(machine.error, BookieFailedError)
    assert machine.on_spares_changed(0.0) == []
