"""A protected gateway as a process: it looks at its files when it is told to."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from tests.spark_wal.processes import until
from tests.spark_wal.secured import Secured

pytestmark = pytest.mark.integration


@pytest.mark.rule("X6", "X15")
def test_sighup_revokes_what_was_taken_from_the_file(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "mutual tls and token")
    secured.gateway.start()
    try:
        assert secured.gateway.get("/metrics") is not None
        tokens = tmp_path / "tokens"
        tokens.write_text("".join(line for line in tokens.read_text().splitlines(True) if " test " not in line))
        assert secured.gateway.get("/metrics") is not None
        secured.gateway.signal(signal.SIGHUP)
        until(lambda: secured.gateway.get("/metrics") is None, 20)
        assert secured.gateway.get("/health") is not None
    finally:
        secured.gateway.kill()
    assert "is not authenticated" in (tmp_path / "gateway.log").read_text()
