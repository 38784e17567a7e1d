"""A client that was told to encrypt: what it says, to whom it says nothing, and why."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.sasl.users import user_line
from bookkeeper.auth.signed_tokens import issue
from bookkeeper.auth.token_file import TokenFile, signing_key_line
from bookkeeper.errors import BookieUnavailableError, ConfigError, SecureConnectionError
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from bookkeeper.secret import Secret
from bookkeeper.wire import Dialect, Status
from examples.certificates import Authority
from tests.bookkeeper.auth.sasl.test_providers import private
from tests.bookkeeper.bookie.listeners import LOOPS, bookie, run

HERE = "tests.bookkeeper.auth.providers"
READ = wire.ReadEntry(LedgerId(1), EntryId(0))
BOOKIE = BookieId("b1")
NONE = AuthConfig()

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], "asyncio.Future[None] | None"]


class Listener:
    """A bookie that sends what it is told to, and keeps what it hears."""

    def __init__(self, *answers: bytes, then_close: bool = False) -> None:
        self.heard = b""
        self.ended = asyncio.Event()
        self._answers = list(answers)
        self._then_close = then_close

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.heard += data
                if self._answers:
                    writer.write(self._answers.pop(0))
                if self._then_close and not self._answers:
                    writer.close()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
            self.ended.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()


def start_tls_reply(reply: wire.Reply) -> bytes:
    return wire.encode_reply(wire.RequestHeader(Dialect.V3, wire.Operation.START_TLS, 1, 3), reply)


START_TLS_OK = start_tls_reply(wire.StartTlsReply(Status.OK))


def security(tls: TlsConfig | None, auth: AuthConfig = NONE) -> ClientSecurity:
    return ClientSecurity(system_seams().net, Random(1), tls, auth)


@pytest.mark.rule("X2")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (wire.BareReply(Status.BAD_REQUEST), "refuses TLS"),
        (wire.BareReply(Status.IO_ERROR), "refuses TLS"),
        (wire.BareReply(Status.UNAUTHORIZED), "refuses TLS|is lost"),
    ],
)
def test_without_tls_nothing_is_said(tmp_path: Path, loop: str, dialect: Dialect, reply: wire.Reply, says: str) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        listener = Listener(start_tls_reply(reply))
        async with listener.listening() as address:
            with pytest.raises((SecureConnectionError, BookieUnavailableError), match=says):
                await security(TlsConfig(ca=authority.ca)).connect(address, BOOKIE, dialect, timeout_s=30)
            await listener.ended.wait()
        assert listener.heard == wire.encode_request(wire.StartTls(), Dialect.V3, 1)

    run(main, loop)


@pytest.mark.rule("X2", "X7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("answers", "closes", "says"),
    [
        ([], False, "within 0.3 s"),
        ([START_TLS_OK], False, "within 0.3 s|gave up the TLS handshake"),
        ([START_TLS_OK], True, "is lost|gave up the TLS handshake|the TLS handshake with .* failed"),
        ([START_TLS_OK + b"\0\0\0\5he"], False, "in between"),
        ([START_TLS_OK, b"HTTP/1.1 400 no\r\n"], False, "the TLS handshake with .* failed"),
    ],
    ids=["silent", "no handshake", "hangs up", "words behind the answer", "nonsense"],
)
def test_a_handshake_that_does_not_come_about(
    tmp_path: Path, loop: str, answers: list[bytes], closes: bool, says: str
) -> None:
    authority = Authority(tmp_path)
    waits_in_vain = "within" in says
    tls = TlsConfig(ca=authority.ca, handshake_timeout_s=0.3 if waits_in_vain else 30.0)

    async def main() -> None:
        listener = Listener(*answers, then_close=closes)
        async with listener.listening() as address:
            with pytest.raises((SecureConnectionError, BookieUnavailableError), match=says):
                await security(tls).connect(address, BOOKIE, Dialect.V3, timeout_s=30)
            await listener.ended.wait()
        assert listener.heard.startswith(wire.encode_request(wire.StartTls(), Dialect.V3, 1))

    run(main, loop)


@pytest.mark.rule("X4")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_right_certificate_or_none(tmp_path: Path, loop: str) -> None:
    """Who vouches, for which host, until when; on a mismatch the bookie sees the connection end without a request."""
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "stranger")
    elsewhere = authority.server("elsewhere", hosts=["bookie.example.org"])
    expired = authority.server("expired", from_days=-10, days=9)
    good = authority.server()

    async def tried(made: object, tls: TlsConfig) -> str:
        options = {"cert": made.cert, "key": made.key}  # type: ignore[attr-defined]
        name = f"b-{options['cert'].rpartition('/')[2]}"
        async with bookie(tmp_path / name, tls=options) as server:
            try:
                connection = await security(tls).connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)
            except SecureConnectionError as error:
                while server.port.connections.connections:  # type: ignore[union-attr]  # noqa: ASYNC110
                    await asyncio.sleep(0)
                return str(error)
            status = (await connection.request(READ, 30)).status
            connection.close()
            return status.name

    async def main() -> None:
        trusting = TlsConfig(ca=authority.ca)
        assert await tried(good, trusting) == "NO_LEDGER"
        assert "not valid" in await tried(good, TlsConfig(ca=stranger.ca))
        assert "not valid for '127.0.0.1'" in await tried(elsewhere, trusting)
        assert await tried(elsewhere, TlsConfig(ca=authority.ca, insecure_any_host=True)) == "NO_LEDGER"
        assert "expired" in await tried(expired, trusting)
        assert "expired" in await tried(expired, TlsConfig(ca=authority.ca, insecure_any_host=True))

    run(main, loop)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("asks", ["at once", "when it has ended"])
def test_a_certificate_that_is_refused_after_our_side_of_the_handshake(tmp_path: Path, loop: str, asks: str) -> None:
    """TLS 1.3: the connection stands before the bookie has looked at us. Its end says why, whoever was faster."""
    authority = Authority(tmp_path / "ca")
    made = authority.server()
    tls = {"cert": made.cert, "key": made.key, "client_ca": authority.ca}

    async def main() -> None:
        async with bookie(tmp_path / "b", tls=tls) as server:
            secure = security(TlsConfig(ca=authority.ca))
            connection = await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)
            ended = asyncio.Event()
            connection.on_closing.append(lambda _: ended.set())
            if asks == "when it has ended" and not connection.closed:
                await asyncio.wait_for(ended.wait(), 30)
            with pytest.raises(
                BookieUnavailableError, match="does not accept this client's certificate, or requires one"
            ):
                await connection.request(READ, 30)
            assert connection.refusal is not None

    run(main, loop)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_that_we_end_ourselves_is_no_refusal(tmp_path: Path, loop: str) -> None:
    authority = Authority(tmp_path / "ca")
    made = authority.server()

    async def main() -> None:
        async with bookie(tmp_path / "b", tls={"cert": made.cert, "key": made.key}) as server:
            secure = security(TlsConfig(ca=authority.ca))
            connection = await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)
            asking = asyncio.ensure_future(connection.request(READ, 30))
            await asyncio.sleep(0)
            connection.abort()
            with pytest.raises(BookieUnavailableError) as error:
                await asking
            assert "certificate" not in str(error.value)
            assert connection.refusal is None

    run(main, loop)


@pytest.mark.rule("X4")
def test_a_name_bound_to_the_bookies_id_instead_of_its_host(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = authority.server(hosts=["b1.bookies.example"], uris=["spiffe://x/bookie/b1"])

    async def main() -> None:
        async with bookie(tmp_path / "b", tls={"cert": made.cert, "key": made.key}) as server:
            for identity in ("spiffe://x/bookie/{bookie_id}", "{bookie_id}.bookies.example"):
                secure = security(TlsConfig(ca=authority.ca, identity=identity))
                (await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)).close()
                with pytest.raises(SecureConnectionError, match="it is not b2"):
                    await secure.connect(server.address, BookieId("b2"), Dialect.V3, timeout_s=30)

    run(main)


@pytest.mark.rule("X6")
def test_changed_files_are_used_for_new_connections(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    made = new.server()

    async def main() -> None:
        async with bookie(tmp_path / "b", tls={"cert": made.cert, "key": made.key}) as server:
            secure = security(TlsConfig(ca=old.ca, reload_interval_s=1e-9))
            with pytest.raises(SecureConnectionError):
                await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)
            replace(old.ca, new.ca)
            (await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)).close()
            replace(old.ca, None)
            (await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)).close()

    run(main)


def replace(path: str, by: str | None) -> None:
    Path(path).write_bytes(Path(by).read_bytes() if by else b"half a file")


def test_what_cannot_be_used_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        security(TlsConfig(ca=str(tmp_path / "nothing")))
    with pytest.raises(ConfigError, match=r"no\.such"):
        security(None, AuthConfig(provider="no.such:module"))


@pytest.mark.rule("X11")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("options", [{"word": "wrong"}, {"plugin": "another"}])
def test_a_client_that_is_not_accepted_is_told_so_and_no_more(
    tmp_path: Path, dialect: Dialect, options: dict[str, str]
) -> None:
    async def main() -> None:
        async with bookie(tmp_path / "b", auth={"provider": f"{HERE}:server"}) as server:
            secure = security(None, AuthConfig(provider=f"{HERE}:client", options=options))
            with pytest.raises(SecureConnectionError) as error:
                await secure.connect(server.address, BOOKIE, dialect, timeout_s=30)
            assert "word" not in str(error.value)

    run(main)


@pytest.mark.rule("X10a")
@pytest.mark.parametrize("dialect", Dialect)
def test_a_bookie_that_asks_nobody_is_refused_where_its_authentication_is_required(
    tmp_path: Path, dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        provider = f"{HERE}:client"
        insists, lenient = AuthConfig(provider=provider, required=True), AuthConfig(provider=provider)
        async with bookie(tmp_path / "b") as server:
            with pytest.raises(
                SecureConnectionError, match=r"\(b1\) does not auth.* gv-test-plugin \(auth\.required\)"
            ):
                await security(None, insists).connect(server.address, BOOKIE, dialect, timeout_s=30)
            while server.port.connections.connections:  # type: ignore[union-attr]  # noqa: ASYNC110 (hung up)
                await asyncio.sleep(0)
            assert not caplog.records
            secure = security(None, lenient)
            for _ in range(2):
                connection = await secure.connect(server.address, BOOKIE, dialect, timeout_s=30)
                assert (await connection.request(READ, 30)).status is Status.NO_LEDGER
            assert [r.getMessage() for r in caplog.records if "authenticate" in r.getMessage()] == [
                f"{server.address} (b1) does not authenticate clients (AuthDisabledPlugin) and has not authenticated "
                "itself; this client uses it, because auth.required is not set"
            ]
        async with bookie(tmp_path / "c", auth={"provider": f"{HERE}:server"}) as server:
            connection = await security(None, insists).connect(server.address, BOOKIE, dialect, timeout_s=30)
            assert (await connection.request(READ, 30)).status is Status.NO_LEDGER

    run(main)


def test_streams_of_one_process_are_not_encrypted(tmp_path: Path) -> None:
    """An embedded cluster takes no harm from settings for others."""

    async def main() -> None:
        net = InProcessNet()
        await net.listen(Address("b", 1), asyncio.Protocol)
        secure = ClientSecurity(net, Random(1), TlsConfig(ca=str(tmp_path / "nothing")), NONE)
        connection = await secure.connect(Address("b", 1), BOOKIE, Dialect.V3, timeout_s=30)
        assert not connection.encrypted

    asyncio.run(main())


@pytest.mark.rule("X9")
def test_sasl_needs_tls_or_the_word_insecure(tmp_path: Path) -> None:
    options = {"file": private(tmp_path / "me", "etl\nword")}
    with pytest.raises(ConfigError, match=r'"sasl" needs TLS .* auth\.insecure = true speaks it in clear'):
        security(None, AuthConfig(provider="sasl", options=options))
    users = private(tmp_path / "users", user_line("etl", Secret("word")))
    served: dict[str, Any] = {"provider": "sasl", "options": {"file": users}, "insecure": True}

    async def main() -> None:
        async with bookie(tmp_path / "b", auth=served) as server:
            for dialect in Dialect:
                secure = security(None, AuthConfig(provider="sasl", options=options, insecure=True, required=True))
                connection = await secure.connect(server.address, BOOKIE, dialect, timeout_s=30)
                assert (await connection.request(READ, 30)).status is Status.NO_LEDGER

    run(main)


@pytest.mark.rule("X9", "X58")
def test_a_token_file_that_is_gone_is_no_bug_of_the_bookies(tmp_path: Path) -> None:
    """And no bookie hears a token of a client that may not show it."""
    keys = signing_key_line("k1")
    token = issue(TokenFile.parse(keys, "keys"), "etl", 7, end=1 << 32).reveal()
    served = {"provider": "token", "options": {"file": private(tmp_path / "keys", keys)}}

    async def main() -> None:
        async with bookie(tmp_path / "b", auth=served) as server:
            mine = private(tmp_path / "mine", token)
            secure = security(None, AuthConfig(provider="token", options={"file": mine}, required=True))
            for dialect in Dialect:
                connection = await secure.connect(server.address, BOOKIE, dialect, timeout_s=30)
                assert (await connection.request(READ, 30)).status is Status.NO_LEDGER
            os.unlink(mine)
            with pytest.raises(SecureConnectionError, match=r"no authentication with .* cannot be read"):
                await secure.connect(server.address, BOOKIE, Dialect.V3, timeout_s=30)

    run(main)
