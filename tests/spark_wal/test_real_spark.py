"""Unmodified PySpark with its checkpoint on a gateway: both state stores, both file managers, and what kills.

The gateway is a process with a namespace in a directory; the driver (Python and its JVM) is a process
group. Moments are found by the gateway's feed of events, never by waiting.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark_wal.processes import Driver, GatewayProcess, assert_exactly_once, conf, until
from tests.spark_wal.streaming_job import expected

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "namespace")
    process.start()
    yield process
    process.kill()


@pytest.fixture
def drive(gateway: GatewayProcess, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def start(out: str = "out", **job: Any) -> Driver:
        drivers.append(Driver(gateway.location("ckpt"), tmp_path / out, **job))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.kill()


@pytest.mark.rule("S1", "S2", "S3", "S4")
@pytest.mark.parametrize(("store", "manager"), [("hdfs", "FileContext"), ("rocksdb", "FileSystem")])
def test_a_driver_killed_between_planning_and_committing_a_batch_repeats_exactly_that_batch(
    gateway: GatewayProcess, drive: Callable[..., Driver], store: str, manager: str
) -> None:
    first = drive(conf=conf(store, manager), hold=2)
    gateway.wait_for("/ckpt/offsets/2", by=first)
    until(lambda: 2 in first.attempts())
    first.kill()
    assert gateway.has("/ckpt/commits/1")
    assert not gateway.has("/ckpt/commits/2")
    second = drive(conf=conf(store, manager), until=4)
    last = second.result()["finished"]
    assert_exactly_once(second.out, last)
    assert second.attempts() == [0, 1, 2, *range(2, last + 1)]


@pytest.mark.rule("S1")
def test_a_second_driver_takes_over_and_the_first_ends_with_sparks_own_error(
    gateway: GatewayProcess, drive: Callable[..., Driver]
) -> None:
    first = drive("first", conf=conf(), until=10_000, pause_s=0.2)
    gateway.wait_for("/ckpt/commits/1", by=first)
    first.signal(signal.SIGSTOP)
    second = drive("second", conf=conf(), until=6)
    assert second.result()["finished"] >= 6
    first.signal(signal.SIGCONT)
    failed = first.result()["failed"]
    assert "CONCURRENT_STREAM_LOG_UPDATE" in failed or "multiple streaming queries" in failed.lower()
    for batch in second.attempts():
        assert json.loads((second.out / str(batch)).read_text()) == expected(batch)


@pytest.mark.rule("S3", "S4")
def test_a_gateway_that_is_killed_and_comes_back_does_not_end_the_query(
    gateway: GatewayProcess, drive: Callable[..., Driver]
) -> None:
    driver = drive(conf=conf(), until=4, hold=2, hold_s=1.0)
    until(lambda: 2 in driver.attempts())
    gateway.kill()
    time.sleep(3)  # the driver wants to commit long before this ends
    gateway.start()
    last = driver.result()["finished"]
    assert_exactly_once(driver.out, last)
    assert driver.attempts() == list(range(last + 1))
