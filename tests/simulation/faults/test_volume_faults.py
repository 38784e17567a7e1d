"""What worlds with several ledger directories go through."""

from __future__ import annotations

from tests.simulation.faults.volume_faults import VolumeFaults
from tests.simulation.plan import FIRST_WITH_VOLUMES, VOLUME_FAULTS, plan


def test_there_is_one_method_for_each_kind() -> None:
    assert all(callable(getattr(VolumeFaults, kind)) for kind in VOLUME_FAULTS)


def test_worlds_have_and_lack_every_kind() -> None:
    plans = [plan(seed) for seed in range(FIRST_WITH_VOLUMES, FIRST_WITH_VOLUMES + 100)]
    for kind in VOLUME_FAULTS:
        assert 40 < sum(kind in made.faults for made in plans) < 95
