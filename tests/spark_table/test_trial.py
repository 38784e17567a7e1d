"""A few modes through their three lives; the campaign has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_table.trial import Trial
from tests.spark_wal.processes import GatewayProcess

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

from tests.spark_table.modes import MODES  # it imports pyspark

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(600)]

CHOSEN = ("stream-stream join, left outer", "applyInPandasWithState, update", "file sink")


@pytest.mark.rule("S1", "S2", "S3", "S4")
def test_modes_of_spark_leave_and_see_the_same_at_a_gateway_as_in_a_directory(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "namespace")
    gateway.start()
    try:
        trial = Trial(tmp_path / "trial", f"webhdfs://127.0.0.1:{gateway.port}")
        outcomes = trial.run(CHOSEN)
    finally:
        gateway.kill()
    assert [each.mode for each in outcomes] == list(CHOSEN) and set(CHOSEN) <= set(MODES)
    for each in outcomes:
        assert each.is_equal, each
        assert (each.error, each.crashed_in) == ("", 2) and each.batches >= 4, each
    assert trial.run(CHOSEN) == outcomes, "what is done is not run again: the gateway is gone"
