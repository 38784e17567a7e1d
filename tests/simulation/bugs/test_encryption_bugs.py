"""Bugs of encryption are found by the watch over what is sealed, and are gone afterwards."""

from __future__ import annotations

import pytest

import bookkeeper.client.ledgers.ledger_creation as ledger_creation
from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.testing.patches import patches
from tests.simulation import run_seed
from tests.simulation.bugs.bugs import BUGS
from tests.simulation.bugs.encryption_bugs import ENCRYPTION_BUGS
from tests.simulation.plan import FIRST_WITH_ENCRYPTION


def test_they_are_bugs_like_the_others_and_are_gone_afterwards() -> None:
    assert len(ENCRYPTION_BUGS) == 2
    before = (vars(ledger_creation)["new_ledger_key"], AdvancedHandle._new)
    for name, bug in ENCRYPTION_BUGS.items():
        assert BUGS[name] is bug and bug.first == FIRST_WITH_ENCRYPTION and bug.breaks == "X24"
        with patches() as patch:
            bug.plant(patch)
            assert (vars(ledger_creation)["new_ledger_key"], AdvancedHandle._new) != before
        assert (vars(ledger_creation)["new_ledger_key"], AdvancedHandle._new) == before


@pytest.mark.rule("X24")
@pytest.mark.parametrize("name", list(ENCRYPTION_BUGS))
def test_a_second_payload_under_one_key_and_nonce_is_found(name: str) -> None:
    for seed in range(FIRST_WITH_ENCRYPTION, FIRST_WITH_ENCRYPTION + 10):
        result = run_seed(seed, name)
        if result.problems:
            break
    assert result.problems and result.problems[0].startswith("X24: another payload is sealed")
