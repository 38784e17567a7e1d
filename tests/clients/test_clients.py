"""Stock clients against a gateway that is a process of its own, from 1 B to 16 MB, over connections that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.drive import MB, SIZES
from tests.clients.session import python_outcomes, spark_outcomes
from tests.spark_wal.processes import GatewayProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "namespace")
    process.start()
    yield process
    process.kill()
    log = (tmp_path / "gateway.log").read_text()
    assert "Traceback" not in log
    assert "is closed" not in log


@pytest.mark.rule("S2", "S4")
def test_python_clients_write_and_read_files_of_any_size(gateway: GatewayProcess) -> None:
    outcomes = list(python_outcomes(gateway, SIZES, rounds=1))
    assert [outcome for outcome in outcomes if outcome.error is not None] == []
    assert len(outcomes) == 8 * len(SIZES), "every way with every size"


@pytest.mark.spark
@pytest.mark.rule("S2", "S4")
def test_javas_client_and_spark_with_real_state(gateway: GatewayProcess, tmp_path: Path) -> None:
    """A query whose state had grown by 60,000 keys in a batch died of an upload that was reset; so did every third file
    of 3 MB; and Spark could read no file, for it asks first where its blocks lie."""
    pytest.importorskip("pyspark")
    outcomes = list(spark_outcomes(gateway, tmp_path / "spark.log", SIZES, rounds=1, keys=60_000, batches=2))
    assert [outcome for outcome in outcomes if outcome.error is not None] == []
    assert {outcome.way for outcome in outcomes} >= {
        "Spark reads JSON",
        "Spark, state in hdfs",
        "Spark, state in rocksdb",
    }
    assert len(outcomes) == len(SIZES) + sum(size <= MB for size in SIZES) + 3
