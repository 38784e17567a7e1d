"""Connections by TLS alone. A whole ZooKeeper with TLS is in test_zookeeper."""

from __future__ import annotations

import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.meta.stores.credentials import ZooKeeperTls
from bookkeeper.meta.stores.zookeeper_tls import TlsHandler
from bookkeeper.testing.certificates import Authority, Certificate


@contextmanager
def server(shown: Certificate, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Iterator[tuple[str, int]]:
    """Shakes hands, and then says hello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = newest
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(shown.cert, shown.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # the socket was closed
                while True:
                    plain, _ = listening.accept()
                    with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as wrapped:
                        wrapped.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[:2]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def hello(tls: ZooKeeperTls | TlsHandler, address: tuple[str, int], hostname: str = "127.0.0.1") -> bytes:
    handler = tls if isinstance(tls, TlsHandler) else TlsHandler(tls)
    with handler.create_connection(address, hostname=hostname, timeout=20.0, use_ssl=False) as connection:
        return bytes(connection.recv(5))


@pytest.mark.rule("X4", "X8")
def test_only_the_authority_that_was_named_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: the client's library trusted the public authorities beside the one that was named, so everybody with a
    certificate of one of them could pose as ZooKeeper.
    """
    ours, public = Authority(tmp_path / "ours"), Authority(tmp_path / "public", "a public authority")
    monkeypatch.setenv("SSL_CERT_FILE", public.ca)
    with server(ours.server("z")) as address:
        assert hello(ZooKeeperTls(ca=ours.ca), address) == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError):
            hello(ZooKeeperTls(ca=ours.ca), address, "zookeeper.example.org")
        assert hello(ZooKeeperTls(ca=ours.ca, check_host=False), address, "zookeeper.example.org") == b"hello"
    with server(public.server("z")) as address:
        assert hello(ZooKeeperTls(), address) == b"hello", "without an authority the public ones are"
        with pytest.raises(ssl.SSLCertVerificationError):
            hello(ZooKeeperTls(ca=ours.ca), address)


@pytest.mark.rule("X3", "X8")
def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with server(authority.server("z"), ssl.TLSVersion.TLSv1_2) as address:
        assert hello(ZooKeeperTls(ca=authority.ca), address) == b"hello"
    with server(authority.server("z"), ssl.TLSVersion.TLSv1_1) as address, pytest.raises(ssl.SSLError):
        hello(ZooKeeperTls(ca=authority.ca), address)


@pytest.mark.rule("X43")
def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """Cause: the key towards ZooKeeper was handed to the library without a look at its file."""
    authority = Authority(tmp_path)
    shown = authority.client()
    Path(shown.key).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        TlsHandler(ZooKeeperTls(ca=authority.ca, certificate=shown.cert, key=shown.key))


@pytest.mark.rule("X6")
def test_a_new_connection_uses_changed_files_and_the_old_ones_if_they_are_no_good(tmp_path: Path) -> None:
    first, second = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another authority")
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Path(first.ca).read_text())
    handler = TlsHandler(ZooKeeperTls(ca=str(trusted)))
    with server(second.server("z")) as address:
        with pytest.raises(ssl.SSLCertVerificationError):
            hello(handler, address)
        trusted.write_text(Path(second.ca).read_text() * 2)
        assert hello(handler, address) == b"hello"
        trusted.write_text("no certificate")
        assert hello(handler, address) == b"hello"
