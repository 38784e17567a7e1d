from __future__ import annotations

import logging
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kazoo import exceptions as zk
from kazoo.security import OPEN_ACL_UNSAFE

from bookkeeper.errors import (
    ConfigError,
    KeyExistsError,
    MetadataConflictError,
    MetadataForbiddenError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)
from bookkeeper.meta.store import Check, Create, Delete, Operation, Set, Version
from bookkeeper.meta.stores.credentials import Credentials, ZooKeeperTls
from bookkeeper.meta.stores.zookeeper_client import (
    KEPT_MAX,
    REPEAT_S,
    ConnectionLog,
    Numbered,
    RepeatedLogFilter,
    TlsHandler,
    access_list,
    new_client,
    new_transaction,
    translate,
)
from bookkeeper.secret import Secret
from examples.certificates import Authority, Certificate


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
        assert hello(ZooKeeperTls(ca=ours.ca, insecure_any_host=True), address, "zookeeper.example.org") == b"hello"
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


US = Credentials(user="bk", password=Secret("planted"), readers=(("sasl", "monitor"),))


def test_the_clients_errors_are_translated_once() -> None:
    for theirs, ours in (
        (zk.NoNodeError(), NoSuchKeyError),
        (zk.NodeExistsError(), KeyExistsError),
        (zk.BadVersionError(), MetadataConflictError),
        (zk.ConnectionLoss(), MetadataUnavailableError),
        (zk.SessionExpiredError(), SessionExpiredError),
        (zk.NoAuthError(), MetadataForbiddenError),
        (zk.InvalidACLError(), MetadataForbiddenError),
        (zk.AuthFailedError(), MetadataForbiddenError),
    ):
        assert type(translate("x", theirs, "us")) is ours


@pytest.mark.rule("X26")
def test_what_we_create_is_ours_and_its_readers_and_nobody_elses() -> None:
    acl = access_list(US)
    assert acl is not None
    assert [(entry.id.scheme, entry.id.id, entry.acl_list) for entry in acl] == [
        ("auth", "", ["ALL"]),
        ("sasl", "monitor", ["READ"]),
    ]
    assert new_client("127.0.0.1:1", US, 1.0).default_acl == acl


def test_without_an_identity_everybody_may_as_in_java() -> None:
    assert access_list(Credentials()) is None
    assert OPEN_ACL_UNSAFE[0].id.scheme == "world"


@pytest.mark.rule("X28")
def test_a_client_that_would_show_its_password_is_not_made() -> None:
    with pytest.raises(ConfigError, match="in clear text"):
        new_client("127.0.0.1:1,192.0.2.1:2181", US, 1.0)


def record(message: str, *, level: int = logging.WARNING, at: float = 0.0) -> logging.LogRecord:
    made = logging.LogRecord("x", level, "", 0, message, ("host",), None)
    made.created = at
    return made


def test_a_warning_that_repeats_is_written_once_in_a_while_with_its_number() -> None:
    throttle = RepeatedLogFilter()
    passed = [second for second in range(100) if throttle.filter(record("lost %s", at=second))]
    assert passed == [0, 30, 60, 90]
    assert throttle.filter(record("another %s", at=99))
    late = record("lost %s", at=90 + REPEAT_S)
    assert throttle.filter(late)
    assert late.getMessage() == "lost host (9 more of this kind)"


@pytest.mark.rule("X58")
def test_what_the_client_sends_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    client = new_client("127.0.0.1:1", US, 1.0)
    for level in (5, logging.DEBUG):
        client.logger.log(level, "Sending request: %s", client.auth_data)
    client.logger.info("harmless")
    assert "planted" not in caplog.text
    assert "harmless" in caplog.text


def test_what_a_client_says_before_the_first_contact_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ConnectionLog()
    log.warning("no server at %s", "a")
    log.info("a server at %s", "b")
    assert caplog.messages == []
    log.show()
    log.warning("it has gone")
    log.debug("a password")
    assert caplog.messages == ["no server at a", "a server at b", "it has gone"]


def test_a_client_that_makes_no_contact_for_long_keeps_the_newest_it_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ConnectionLog()
    for number in range(KEPT_MAX + 5):
        log.info(f"try {number}")  # each of its own: repetitions are left out
    log.show()
    assert caplog.messages == [f"try {number}" for number in range(5, KEPT_MAX + 5)]


def test_where_nobody_logs_a_client_keeps_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = ConnectionLog()
    log.info("a server")
    caplog.set_level(logging.INFO)
    log.show()
    assert caplog.messages == []


@pytest.mark.parametrize("chroot", ["", "/some/where"])
@pytest.mark.parametrize("identified", [False, True])
def test_the_parts_of_a_transaction_are_those_that_the_library_makes(chroot: str, *, identified: bool) -> None:
    who = US if identified else Credentials()
    client = new_client(f"127.0.0.1:1{chroot}", who, 1.0)
    operations: list[Operation] = [
        Create("/a/b", b"x"), Create("/e", b"", ephemeral=True), Numbered("/n/ID-", b"", ephemeral=True),
        Numbered("/n/HOB-"), Set("/a", b"y", Version(3)), Set("/a", b"", None), Delete("/a/b", Version(0)),
        Delete("/a", None), Check("/", None), Check("/ä", Version(2)),
    ]  # fmt: skip
    made, theirs = new_transaction(client, operations), client.transaction()
    theirs.create("/a/b", b"x")
    theirs.create("/e", b"", ephemeral=True)
    theirs.create("/n/ID-", b"", ephemeral=True, sequence=True)
    theirs.create("/n/HOB-", b"", sequence=True)
    theirs.set_data("/a", b"y", 3)
    theirs.set_data("/a", b"")
    theirs.delete("/a/b", 0)
    theirs.delete("/a")
    theirs.check("/", -1)
    theirs.check("/ä", 2)
    assert made.operations == theirs.operations
    assert [part.serialize() for part in made.operations] == [part.serialize() for part in theirs.operations]
