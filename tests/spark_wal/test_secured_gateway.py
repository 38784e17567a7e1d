"""A protected gateway as a process: it looks at its files when it is told to."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from tests.spark_wal.processes import until
from tests.spark_wal.secured import Secured

pytestmark = pytest.mark.integration


def serial(secured: Secured) -> str:
    """Of the certificate that a new connection is shown."""
    with (
        socket.create_connection(("127.0.0.1", secured.gateway.port)) as plain,
        secured.trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        shown = connection.getpeercert()
    assert shown is not None
    return str(shown["serialNumber"])


@pytest.mark.rule("X6")
def test_sighup_takes_a_renewed_certificate(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "mutual tls")
    secured.gateway.start()
    try:
        before = serial(secured)
        secured.authority.server("gateway")
        assert serial(secured) == before
        secured.gateway.signal(signal.SIGHUP)
        until(lambda: serial(secured) != before, 60)
        assert secured.gateway.get("/metrics") is not None
    finally:
        secured.gateway.kill()


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
        until(lambda: secured.gateway.get("/metrics") is None, 60)
        assert secured.gateway.get("/health") is not None
    finally:
        secured.gateway.kill()
    assert "it brought no valid token or client certificate" in (tmp_path / "gateway.log").read_text()
