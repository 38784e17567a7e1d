"""Unmodified PySpark with its checkpoint on a gateway that wants TLS and a token, fetched by OAuth2.

Other protections and other versions of Spark: ``python -m tests.spark_wal.versions``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_wal.processes import Driver, assert_exactly_once, until

pytest.importorskip("pyspark")
pytest.importorskip("cryptography")
pytest.importorskip("bookkeeper.launchers.java")

from tests.spark_wal.secured import Secured

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.mark.rule("X2", "X8", "X9", "X56")
def test_a_driver_is_killed_and_its_successor_goes_on(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "tls and oauth2")
    secured.gateway.start()
    conf = secured.spark_conf()
    location = secured.gateway.location("ckpt")
    first = Driver(location, tmp_path / "out", conf=conf, hold=1)
    second = None
    try:
        until(lambda: 1 in first.attempts())
        first.kill()
        assert secured.gateway.has("/ckpt/offsets/1")
        assert not secured.gateway.has("/ckpt/commits/1")
        second = Driver(location, tmp_path / "out", conf=conf, until=2)
        last = second.result()["finished"]
    finally:
        first.kill()
        if second is not None:
            second.kill()
        secured.gateway.kill()
    assert_exactly_once(tmp_path / "out", last)
    assert second.attempts() == [0, 1, *range(1, last + 1)]
    for log in tmp_path.glob("*.log"):
        assert secured.token.reveal() not in log.read_text()
