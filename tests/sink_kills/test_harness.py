"""Drivers are killed, batches come again with other rows, and none is lost or there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.gateway.processes import standalone
from tests.sink_kills.harness import Trial

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.mark.rule("S14")
def test_ten_drivers_are_killed_and_no_batch_is_lost_or_twice(tmp_path: Path) -> None:
    with standalone(tmp_path / "cluster") as metadata:
        trial = Trial(metadata, tmp_path / "trial", 7)
        trial.run(4)
        found = Trial(metadata, tmp_path / "trial", 7).run(10)  # it goes on where it was stopped
        assert len(trial.kills) == 10 and found.batches >= 10
        assert found.is_good, (found.lost, found.twice)
        bug = Trial(metadata, tmp_path / "bug", 7, stream="without-keys", ignore_key=True)
        assert bug.run(1).twice
