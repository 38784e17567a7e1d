"""A connection whose client would be refused today ends: idle, writing, or in a long poll."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.access.principal import Principal, PrincipalKind
from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.sasl.users import user_line
from bookkeeper.auth.signed_tokens import issue
from bookkeeper.auth.token_file import TokenFile, revoked_line, signing_key_line
from bookkeeper.bookie.connections.connection_security import ConnectionSecurity, SecuredConnection
from bookkeeper.bookie.connections.credential_watch import Credential, CredentialWatch
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import BookieError, SecureConnectionError
from bookkeeper.ids import EntryId
from bookkeeper.net.connection import BookieConnection
from bookkeeper.net.tls import TlsConfig
from bookkeeper.secret import Secret
from bookkeeper.wire import Dialect
from examples.certificates import Authority
from tests.bookkeeper.auth.sasl.test_providers import private
from tests.bookkeeper.bookie.connections.test_connection_security import LEDGER, append, connect, read_back, served_by
from tests.bookkeeper.bookie.listeners import bookie, run

HOURS = 3600.0
LONG_POLL = wire.ReadEntry(LEDGER, EntryId(-1), previous_lac=EntryId(1 << 40), timeout_ms=50_000)


@dataclass(frozen=True)
class Way:
    """One way to lose what was shown: a bookie's options, a client's, and what takes it away."""

    options: dict[str, Any]
    tls: TlsConfig
    auth: AuthConfig
    principal: Principal
    take_away: Callable[[ConnectionSecurity], object]
    comes_back: bool = False


def way(name: str, tmp_path: Path) -> Way:
    """The way called ``name``, with its files."""
    ours = Authority(tmp_path / "ours")
    trusted = private(tmp_path / "clients.pem", Path(ours.ca).read_text())
    server = ours.server()
    if name.startswith(("certificate", "authority")):
        shown = ours.client("etl", units=["0:writer"])
        options: dict[str, Any] = {"tls": {"cert": server.cert, "key": server.key, "client_ca": trusted}}
        tls, auth = TlsConfig(ca=ours.ca, cert=shown.cert, key=shown.key), AuthConfig()
        lists = Path(ours.ca).read_text() + Path(ours.revocations(shown)).read_text()
        text = lists if name == "certificate revoked" else Path(Authority(tmp_path / "theirs").ca).read_text()
        principal = Principal(PrincipalKind.CERTIFICATE, "etl", ("writer",))
        if name == "certificate ends":
            return Way(
                options, tls, auth, principal, lambda it: it.watch.end_refused(it.now_s() + 31 * 24 * HOURS), True
            )
        return Way(options, tls, auth, principal, lambda it: replaced(it, tmp_path / "clients.pem", text))
    options = {"tls": served_by(server)}
    tls = TlsConfig(ca=ours.ca)
    if name == "user removed":
        file = private(tmp_path / "users", user_line("etl", Secret("word"), ["writer"]))
        options["auth"] = {"provider": "sasl", "options": {"file": file}}
        auth = AuthConfig(provider="sasl", options={"file": private(tmp_path / "me", "etl\nword")}, required=True)
        principal = Principal(PrincipalKind.SASL, "etl", ("writer",))
        return Way(options, tls, auth, principal, lambda it: replaced(it, tmp_path / "users", "# nobody\n"))
    keys = signing_key_line("k1")
    end = int(time.time() + HOURS)
    options["auth"] = {"provider": "token", "options": {"file": private(tmp_path / "keys", keys)}}
    token = issue(TokenFile.parse(keys, "keys"), "etl", 7, end=end, roles=["writer"]).reveal()
    auth = AuthConfig(provider="token", options={"file": private(tmp_path / "mine", token)}, required=True)
    principal = Principal(PrincipalKind.TOKEN, "etl", ("writer",))
    if name == "token ends":
        return Way(options, tls, auth, principal, lambda it: it.watch.end_refused(end), True)
    text = signing_key_line("k2") if name == "key removed" else keys + revoked_line("principal:etl")
    return Way(options, tls, auth, principal, lambda it: replaced(it, tmp_path / "keys", text))


def replaced(security: ConnectionSecurity, path: Path, text: str) -> None:
    private(path, text)
    security.refresh()


def security_of(server: BookieServer) -> ConnectionSecurity:
    assert server.port.security is not None
    return server.port.security


def only(server: BookieServer) -> SecuredConnection:
    assert server.port.connections is not None
    (found,) = server.port.connections.connections
    assert isinstance(found, SecuredConnection)
    return found


async def gone(connection: BookieConnection) -> None:
    while not connection.closed:  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.005)


@pytest.mark.rule("X15")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    "name",
    [
        "certificate ends",
        "certificate revoked",
        "authority removed",
        "token ends",
        "token revoked",
        "key removed",
        "user removed",
    ],
)
def test_an_idle_connection_ends_and_nobody_else(tmp_path: Path, name: str, dialect: Dialect) -> None:
    it = way(name, tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            security = security_of(server)
            connection = await connect(server, it.tls, dialect, it.auth)
            await append(connection, [b"answered"])
            theirs = only(server)
            assert theirs.principal == it.principal
            assert security.watch.end_refused(security.now_s()) == 0 and not theirs.closed
            security.refresh()
            assert not theirs.closed, "nothing has changed"
            it.take_away(security)
            await gone(connection)
            assert server.metrics.counter("ended_credentials_total").value == 1
            if not it.comes_back:
                with pytest.raises((SecureConnectionError, BookieError)):
                    await read_back(await connect(server, it.tls, dialect, it.auth), 0)
                return
            again = await connect(server, it.tls, dialect, it.auth)
            assert (await read_back(again, 0)).endswith(b"answered"), "what was answered stays"

    run(main)


@pytest.mark.rule("X15")
@pytest.mark.parametrize("name", ["certificate ends", "token ends"])
def test_a_long_poll_does_not_hold_it(tmp_path: Path, name: str) -> None:
    it = way(name, tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            connection = await connect(server, it.tls, Dialect.V3, it.auth)
            await append(connection, [b"x"])
            poll = asyncio.create_task(connection.request(LONG_POLL, 60))
            theirs = only(server)
            while not theirs.is_polling:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0.005)
            it.take_away(security_of(server))
            with pytest.raises(BookieError):
                await poll
            await gone(connection)

    run(main)


@pytest.mark.rule("X15")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_writer_is_ended_in_the_middle_and_what_was_answered_stays(tmp_path: Path, loop: str) -> None:
    it = way("token ends", tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            connection = await connect(server, it.tls, Dialect.V3, it.auth)
            answered = 0
            writing = asyncio.Event()

            async def write() -> None:
                nonlocal answered
                while True:
                    await append(
                        connection, [b"entry %d" % number for number in range(answered, answered + 50)], answered
                    )
                    answered += 50
                    writing.set()

            task = asyncio.create_task(write())
            await writing.wait()
            it.take_away(security_of(server))
            with pytest.raises(BookieError):
                await task
            again = await connect(server, it.tls, Dialect.V3, it.auth)
            for entry in (0, answered - 1):
                assert (await read_back(again, entry)).endswith(b"entry %d" % entry)

    run(main, loop)


@pytest.mark.rule("X15")
def test_nothing_is_taken_after_the_end(tmp_path: Path) -> None:
    """A client that goes on sending, and does not read, is cut off."""
    it = way("token ends", tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            connection = await connect(server, it.tls, Dialect.V3, it.auth)
            await append(connection, [b"x"])
            theirs = only(server)
            frame = wire.encode_request(wire.ReadEntry(LEDGER, EntryId(0)), Dialect.V3, 9)
            it.take_away(security_of(server))
            before = theirs.sent_bytes
            assert theirs.on_bytes(bytearray(frame), 0, len(frame)) == len(frame)
            await gone(connection)
            assert theirs.sent_bytes == before

    run(main)


@pytest.mark.rule("X15")
def test_the_bookie_looks_by_itself_once_in_an_interval(tmp_path: Path) -> None:
    it = way("user removed", tmp_path)
    it.options["tls"]["reload_interval_s"] = 0.05

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            connection = await connect(server, it.tls, Dialect.V3, it.auth)
            await append(connection, [b"x"])
            private(tmp_path / "users", "# nobody\n")
            await gone(connection)

    run(main)


@pytest.mark.rule("X6", "X15")
def test_files_that_cannot_be_used_end_nobody(tmp_path: Path) -> None:
    it = way("user removed", tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **it.options) as server:
            connection = await connect(server, it.tls, Dialect.V3, it.auth)
            replaced(security_of(server), tmp_path / "users", "nonsense\n")
            assert server.metrics.counter("auth_reload_failures_total").value == 1
            await append(connection, [b"x"])

    run(main)


class Held:
    """A connection that only notes its end."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self.reason: str | None = None

    def credential_ended(self, reason: str) -> None:
        self.reason = reason


@pytest.mark.rule("X15")
def test_each_connection_is_judged_by_its_own_and_told_once() -> None:
    watch = CredentialWatch(None)
    soon, later, never = Held(Credential(ends_at=10.0)), Held(Credential(ends_at=20.0)), Held(Credential())
    for each in (soon, later, never):
        watch.add(each)
    assert watch.end_refused(9.9) == 0
    assert watch.end_refused(10.0) == 1 and soon.reason is not None and later.reason is None
    soon.reason = None
    watch.remove(later)
    assert watch.end_refused(30.0) == 0 and (soon.reason, later.reason, never.reason) == (None, None, None)
