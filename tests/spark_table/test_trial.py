"""A few modes through their three lives, and one that is drawn; the campaign has all of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.spark_table.trial import Trial
from tests.spark_wal.processes import GatewayProcess

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

from tests.spark_table.modes import MODES  # it imports pyspark

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(600)]

CHOSEN = ("stream-stream join, left outer", "applyInPandasWithState, update", "file sink")


def drawn(seed: int) -> str:
    """Another mode that Spark carries out, by the number with which the run draws."""
    others = [name for name, each in MODES.items() if not each.reason and not each.lake and name not in CHOSEN]
    return Random(seed).choice(others)


@pytest.mark.rule("S1", "S2", "S3", "S4")
def test_modes_of_spark_leave_and_see_the_same_at_a_gateway_as_in_a_directory(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    modes = [*CHOSEN, drawn(request.config.getoption("randomly_seed", 0))]
    gateway = GatewayProcess(tmp_path / "namespace")
    gateway.start()
    try:
        trial = Trial(tmp_path / "trial", f"webhdfs://127.0.0.1:{gateway.port}")
        outcomes = trial.run(modes)
    finally:
        gateway.kill()
    assert [each.mode for each in outcomes] == modes
    for each in outcomes:
        assert each.is_equal and not each.error, each
    for each in outcomes[: len(CHOSEN)]:
        assert each.crashed_in == 2 and each.batches >= 4, each
    assert trial.run(modes) == outcomes, "what is done is not run again: the gateway is gone"
