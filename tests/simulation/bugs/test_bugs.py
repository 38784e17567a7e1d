"""Planted bugs come and go."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.bookie import Bookie
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.recovery.fencing import FencePhase
from bookkeeper.ledger.recovery.reading import ReadPhase
from bookkeeper.ledger.recovery.writing import WritePhase
from bookkeeper.ledger.write import LedgerWriter
from bookkeeper.ledger.write.ensemble_changes import EnsembleChanges
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.start.group_continuity import GroupContinuity
from bookkeeper.storage.updates.ledger_updates import LedgerUpdates
from tests.simulation.bugs.bugs import BUGS, planted

WATCHED = (
    Bookie,
    Engine,
    EnsembleChanges,
    FencePhase,
    GroupContinuity,
    LedgerRecovery,
    LedgerUpdates,
    LedgerWriter,
    ReadPhase,
    Unknowns,
    WriterEnsemble,
    WritePhase,
)


@pytest.mark.parametrize("name", list(BUGS))
def test_a_planted_bug_is_gone_afterwards(name: str) -> None:
    before = [dict(vars(owner)) for owner in WATCHED]
    with planted(name):
        pass
    assert [dict(vars(owner)) for owner in WATCHED] == before
    bug = BUGS[name]
    assert bug.breaks
    assert bug.what.endswith(".")
    assert 0 < bug.within <= 1000


def test_none_is_none() -> None:
    before = [dict(vars(owner)) for owner in WATCHED]
    with planted(None):
        assert [dict(vars(owner)) for owner in WATCHED] == before
