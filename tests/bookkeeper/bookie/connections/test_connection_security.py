"""Bookies that encrypt and ask who is there, over real sockets, on both kinds of loop."""

from __future__ import annotations

import asyncio
import math
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.access.principal import Principal, PrincipalKind
from bookkeeper.auth.certificate import EXPIRES_SOON_S
from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.sasl.digest_md5 import DigestClient
from bookkeeper.auth.sasl.users import user_line
from bookkeeper.auth.signed_tokens import issue
from bookkeeper.auth.token_file import TokenFile, signing_key_line
from bookkeeper.bookie.connections.connection_security import (
    ADDRESSES_MAX,
    DOUBLINGS_MAX,
    FAILURES_KEPT_S,
    REFUSAL_DELAY_S,
    ConnectionSecurity,
    SecuredConnection,
)
from bookkeeper.bookie.connections.flow_control import UNSENT_HIGH
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import BookieError, ConfigError, SecureConnectionError
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.ledger import master_key
from bookkeeper.metrics import Metrics
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.connection import AddRun, BookieConnection, StreamIds, connect_bookie
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.net.tls import ServerTls, TlsConfig
from bookkeeper.real import SystemClock, system_seams
from bookkeeper.seams import Tls, TlsFiles
from bookkeeper.secret import Secret
from bookkeeper.wire import Dialect, Status
from examples.certificates import Authority, Certificate
from tests.bookkeeper.auth.sasl.test_providers import private
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.cluster import run as run_simulated
from tests.bookkeeper.bookie.listeners import LOOPS, Raw, bookie, exchange, run

KEY = master_key(b"")
SPARK = Principal(PrincipalKind.CERTIFICATE, "spiffe://x/spark", ("writer",))
LEDGER = LedgerId(7)
HERE = "tests.bookkeeper.auth.providers"
READ = wire.ReadEntry(LEDGER, EntryId(0))
START_TLS = wire.encode_request(wire.StartTls(), Dialect.V3, 1)


def served_by(made: Certificate, authority: Authority | None = None, **more: Any) -> dict[str, Any]:
    return {"cert": made.cert, "key": made.key, "client_ca": authority.ca if authority else None, **more}


def replace(old: Certificate, new: Certificate | None) -> None:
    """Write a new certificate over an old one; None: half of one."""
    Path(old.cert).write_bytes(Path(new.cert).read_bytes() if new else b"half a file")
    Path(old.key).write_bytes(Path(new.key).read_bytes() if new else b"half a file")


async def connect(
    server: BookieServer, tls: TlsConfig | None, dialect: Dialect = Dialect.V3, auth: AuthConfig | None = None
) -> BookieConnection:
    security = ClientSecurity(system_seams().net, Random(1), tls, auth or AuthConfig())
    return await security.connect(server.address, BookieId("b1"), dialect, timeout_s=5)


async def append(connection: BookieConnection, payloads: list[bytes], first: int = 0) -> None:
    """Append entries; returns when all are acknowledged."""
    done = asyncio.get_running_loop().create_future()
    left = len(payloads)

    def replies(batch: list[AddRun]) -> None:
        nonlocal left
        assert all(status is Status.OK for _, _, status in batch)
        left -= sum(count for _, count, _ in batch)
        if not left and not done.done():
            done.set_result(None)

    def lost(error: BookieError) -> None:
        if not done.done():
            done.set_exception(error)

    stream = connection.open_stream(StreamIds().next(), LEDGER, replies, lost)
    base = stream.txn_base
    frames = codec.encode_adds(connection.dialect, LEDGER, first, payloads, first - 1, 0, KEY, 3, txn_base=base)[0]
    stream.send(frames)
    await done
    stream.close()


async def read_back(connection: BookieConnection, entry: int, timeout_s: float = 5) -> bytes:
    reply = await connection.request(wire.ReadEntry(LEDGER, EntryId(entry)), timeout_s)
    assert isinstance(reply, wire.ReadReply) and reply.status is Status.OK and reply.entry is not None
    return reply.entry


@pytest.mark.rule("X2", "X3")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dialect", Dialect)
def test_large_and_many_entries_go_through_tls_both_ways(tmp_path: Path, loop: str, dialect: Dialect) -> None:
    """Runs, frames above the receive buffer, replies to many requests at once, and an orderly end."""
    authority = Authority(tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server())) as server:
            connection = await connect(server, TlsConfig(ca=authority.ca), dialect)
            assert connection.encrypted
            large = bytes(range(256)) * 12_000
            await append(connection, [b"%d" % number for number in range(2_000)])
            await append(connection, [large], 2_000)
            assert (await read_back(connection, 2_000)).endswith(large)
            many = await asyncio.gather(*(read_back(connection, entry) for entry in range(2_000)))
            assert all(entry.endswith(b"%d" % number) for number, entry in enumerate(many))
            (theirs,) = server.port.connections.connections  # type: ignore[union-attr]
            assert isinstance(theirs, SecuredConnection)
            connection.close()
            while not theirs.closed:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0)
            assert theirs._reason is None

    run(main, loop)


@pytest.mark.rule("P12", "X2")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_peer_that_does_not_read_is_felt_through_tls_too(tmp_path: Path, loop: str) -> None:
    """Replies of 60 MB for one who reads nothing for a while: the bookie keeps few of them; all come in the end."""
    authority = Authority(tmp_path)
    large = bytes(range(256)) * 4_000

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server())) as server:
            connection = await connect(server, TlsConfig(ca=authority.ca))
            await append(connection, [large])
            theirs: Any = next(iter(server.port.connections.connections))  # type: ignore[union-attr]
            connection.pause_reading()
            replies = [asyncio.ensure_future(read_back(connection, 0, 30)) for _ in range(60)]
            while theirs.flow.stalled_since is None:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0.001)
            assert theirs.unsent < 3 * UNSENT_HIGH
            connection.resume_reading()
            assert all(entry.endswith(large) for entry in await asyncio.gather(*replies))
            assert theirs.flow.stalled_since is None
            connection.close()

    run(main, loop)


@pytest.mark.rule("P7", "X2")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_bookie_that_has_stopped_has_no_connection_left_not_even_to_one_that_does_not_read(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookkeeper.bookie.connections.server.CLOSE_GRACE_S", 0.2)
    authority = Authority(tmp_path)
    large = bytes(range(256)) * 4_000

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server()), drain_s=0.1) as server:
            connection = await connect(server, TlsConfig(ca=authority.ca))
            await append(connection, [large])
            (theirs,) = server.port.connections.connections  # type: ignore[union-attr]
            assert isinstance(theirs, SecuredConnection)
            connection.pause_reading()
            replies = [asyncio.ensure_future(read_back(connection, 0, 30)) for _ in range(60)]
            while theirs.flow.stalled_since is None:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0.001)
            await server.stop()
            assert theirs.closed
            connection.abort()
            await asyncio.gather(*replies, return_exceptions=True)

    run(main, loop)


@pytest.mark.rule("X2")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_request_in_the_same_breath_as_the_end_of_the_handshake(tmp_path: Path, loop: str) -> None:
    """The last flight of the handshake and the first request in one chunk: the answer comes, encrypted."""
    authority = Authority(tmp_path)

    async def main() -> None:
        async with (
            bookie(tmp_path / "b", tls=served_by(authority.server())) as server,
            Raw.connect(server.address) as raw,
        ):
            raw.send(START_TLS)
            assert await raw.frame() is not None
            context = ssl.create_default_context(cafile=authority.ca)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname=server.address.host)
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.send(outgoing.read())
                    incoming.write(await raw.reader.read(65536))
            for _ in range(100):
                tls.write(wire.encode_request(READ, Dialect.V3, 7))
            raw.send(outgoing.read())
            answer = b""
            while len(answer) < 100 * 25:
                incoming.write(await raw.reader.read(65536))
                while True:
                    try:
                        answer += tls.read(65536)
                    except ssl.SSLWantReadError:
                        break
            _, reply = wire.decode_reply(answer[4 : 4 + int.from_bytes(answer[:4], "big")], Dialect.V3)
            assert reply.status is Status.NO_LEDGER

    run(main, loop)


@pytest.mark.rule("X2")
@pytest.mark.parametrize("loop", LOOPS)
def test_words_in_clear_behind_start_tls_end_the_connection(tmp_path: Path, loop: str) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        async with (
            bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server(), mode="offered")) as server,
            Raw.connect(server.address) as raw,
        ):
            raw.send(START_TLS + wire.encode_request(READ, Dialect.V3, 2))
            assert await raw.rest() == b""

    run(main, loop)


@pytest.mark.rule("X2")
@pytest.mark.parametrize("dialect", Dialect)
def test_clear_text_gets_one_error_and_no_second(tmp_path: Path, dialect: Dialect) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server())) as server:
            async with Raw.connect(server.address) as raw:
                raw.send(2 * wire.encode_request(READ, dialect, 2))
                frame = await raw.frame()
                assert frame is not None
                assert wire.decode_reply(frame[4:], dialect)[1].status is Status.UNAUTHORIZED
                assert await raw.rest() == b""
            async with Raw.connect(server.address) as raw:
                adds = codec.encode_adds(dialect, LEDGER, 0, [b"x"], -1, 0, KEY, 3, txn_base=0)[0]
                raw.send(adds)
                assert await raw.frame() is not None
            assert server.metrics.counter("adds_total").value == 0

    run(main)


@pytest.mark.rule("X7", "X10")
@pytest.mark.parametrize(
    "said", [b"", START_TLS[:5], START_TLS, START_TLS + b""], ids=["nothing", "half", "all", "tls"]
)
def test_who_takes_too_long_is_sent_away(tmp_path: Path, said: bytes) -> None:
    authority = Authority(tmp_path)
    tls = served_by(authority.server(), handshake_timeout_s=0.3)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=tls) as server:
            async with Raw.connect(server.address) as raw:
                raw.send(said)
                if said == START_TLS:
                    assert await raw.frame() is not None
                    raw.send(b"\x16\x03\x01")  # a handshake that does not go on
                assert await raw.rest() == b""
            security = server.port.security
            assert security is not None
            while security.handshakes or security.unadmitted:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0)

    run(main)


@pytest.mark.rule("X7")
def test_no_more_handshakes_at_a_time_than_allowed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(authority.server(), handshakes_max=1)) as server:
            async with Raw.connect(server.address) as one, Raw.connect(server.address) as other:
                one.send(START_TLS)
                assert await one.frame() is not None
                other.send(START_TLS)
                assert await other.rest() == b""
            connection = await connect(server, TlsConfig(ca=authority.ca))
            connection.close()

    run(main)


@pytest.mark.rule("X7")
@pytest.mark.parametrize("loop", LOOPS)
def test_one_address_that_holds_all_handshakes_keeps_no_other_out(tmp_path: Path, loop: str) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        tls = served_by(authority.server(), handshakes_max=3)
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=tls) as server, AsyncExitStack() as stack:
            held = [await stack.enter_async_context(Raw.connect(server.address, "127.0.0.2")) for _ in range(4)]
            for one in held[:3]:
                one.send(START_TLS)
                assert await one.frame() is not None
            held[3].send(START_TLS)
            assert await held[3].rest() == b"", "of its own address the first come stay"
            connection = await connect(server, TlsConfig(ca=authority.ca))
            assert await held[0].rest() == b"", "the oldest made room"
            security = server.port.security
            assert security is not None
            while len(security.handshakes) != 2:  # noqa: ASYNC110  # the other two, when the bookie has seen our handshake end
                await asyncio.sleep(0)
            connection.close()

    run(main, loop)


@pytest.mark.rule("X6")
def test_certificates_change_under_a_connection_that_stays(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    made = old.server(days=5)

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=served_by(made)) as server:
            security = server.port.security
            assert security is not None
            before = await connect(server, TlsConfig(ca=old.ca))
            assert server.metrics.gauge("tls_certificate_ends_soon").value == 1, "it is looked at from the start"
            end = server.metrics.gauge("tls_certificate_end_seconds").value
            security.update_metrics(end - EXPIRES_SOON_S + 1)
            assert server.metrics.gauge("tls_certificate_ends_soon").value == 1

            replace(made, None)
            security.refresh()
            assert server.metrics.counter("tls_reload_failures_total").value == 1
            (await connect(server, TlsConfig(ca=old.ca))).close()

            replace(made, new.server(days=90))
            security.refresh()
            security.update_metrics(end)
            assert server.metrics.gauge("tls_certificate_ends_soon").value == 0
            with pytest.raises(SecureConnectionError):
                await connect(server, TlsConfig(ca=old.ca))
            (await connect(server, TlsConfig(ca=new.ca))).close()
            await append(before, [b"still there"])

    run(main)


@pytest.mark.rule("X5", "X15")
def test_the_certificate_says_who_it_is_and_the_rules_whether_to_serve(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    spark = authority.client("spark", units=["0:writer;1:cluster"], uris=["spiffe://x/spark"])
    other = authority.client("other", units=["0:reader"])
    tls = served_by(authority.server(), authority, allow=["spiffe://x/spark"], roles=["writer"])

    async def main() -> None:
        async with bookie(tmp_path / "b", tls=tls) as server:
            connection = await connect(server, TlsConfig(ca=authority.ca, cert=spark.cert, key=spark.key))
            assert (await connection.request(READ, 5)).status is Status.NO_LEDGER
            (theirs,) = server.port.connections.connections  # type: ignore[union-attr]
            assert isinstance(theirs, SecuredConnection) and theirs.principal == SPARK
            refused = await connect(server, TlsConfig(ca=authority.ca, cert=other.cert, key=other.key))
            with pytest.raises(BookieError, match="requires TLS or authentication"):
                await refused.request(READ, 5)
            assert server.metrics.counter("refused_connections_total").value == 1
            connection.close()
            while server.port.connections.connections:  # type: ignore[union-attr]  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert theirs.security.watch.end_refused(math.inf) == 0, "nobody looks after a connection that has ended"

    run(main)


@pytest.mark.rule("X9")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("encrypted", [False, True])
def test_an_exchange_of_several_rounds(tmp_path: Path, dialect: Dialect, encrypted: bool) -> None:
    authority = Authority(tmp_path)
    options: dict[str, Any] = {"auth": {"provider": f"{HERE}:server"}}
    if encrypted:
        options["tls"] = served_by(authority.server())

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, **options) as server:
            tls = TlsConfig(ca=authority.ca) if encrypted else None
            connection = await connect(server, tls, dialect, AuthConfig(provider=f"{HERE}:client"))
            await append(connection, [b"x"])
            (theirs,) = server.port.connections.connections  # type: ignore[union-attr]
            assert isinstance(theirs, SecuredConnection)
            assert isinstance(theirs, SecuredConnection) and theirs.principal == Principal(
                PrincipalKind.PROVIDER, "tester"
            )

    run(main)


@pytest.mark.rule("X10", "X11")
@pytest.mark.parametrize("file", ["wire_v3.json", "wire_v2.json"])
@pytest.mark.parametrize(
    "name",
    [
        "auth/two-rounds-ok",
        "auth/client-without-plugin-read",
        "auth/client-without-plugin-add",
        "auth/other-plugin-name",
        "auth/refused",
    ],
)
def test_captured_exchanges_of_apache(tmp_path: Path, file: str, name: str) -> None:
    """Byte for byte; only that we close at once where Apache's bookie waits for another try."""

    async def main() -> None:
        async with (
            bookie(tmp_path / "b", ledger=LEDGER, auth={"provider": f"{HERE}:server"}) as server,
            Raw.connect(server.address) as raw,
        ):
            for direction, what in exchange(file, name):
                if not isinstance(what, bytes):
                    continue
                if direction == "request":
                    raw.send(what)
                else:
                    assert await raw.frame() == what
            if name != "auth/two-rounds-ok":
                assert await raw.rest() == b""

    run(main)


@pytest.mark.rule("X10", "X11")
@pytest.mark.parametrize("word", ["trip", "for ever"])
def test_a_provider_that_fails_or_hangs_lets_nobody_in(tmp_path: Path, word: str) -> None:
    options: dict[str, Any] = {"tls": {"mode": "off", "handshake_timeout_s": 0.5}}

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, auth={"provider": f"{HERE}:server"}, **options) as server:
            with pytest.raises(SecureConnectionError):
                await connect(server, None, auth=AuthConfig(provider=f"{HERE}:client", options={"word": word}))
            while server.port.connections.connections:  # type: ignore[union-attr]  # noqa: ASYNC110  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0)

    run(main)


@pytest.mark.rule("X6")
def test_a_certificate_of_a_form_that_only_openssl_reads_serves() -> None:
    class Keys:
        certificate = b"no sequence at all"
        trusted = ""

        def refresh(self) -> bool:
            return True

    class OddNet(InProcessNet):
        def tls(self, files: TlsFiles) -> Tls | None:
            return Keys()

    security = ConnectionSecurity(
        OddNet(), ServerTls(cert="c"), None, Metrics(), Random(1), SystemClock(), auth_by_certificate=False
    )
    security.refresh()
    security.update_metrics(0.0)


@pytest.mark.rule("X11")
def test_an_address_that_goes_on_failing_waits_longer() -> None:
    security = ConnectionSecurity(
        InProcessNet(), ServerTls(mode="off"), None, Metrics(), Random(1), SystemClock(), auth_by_certificate=False
    )
    waits = [security.refusal_delay_s("a", float(number)) for number in range(8)]
    assert all(1 <= wait / (REFUSAL_DELAY_S * 2 ** min(n, DOUBLINGS_MAX)) < 2 for n, wait in enumerate(waits))
    assert len(set(waits)) == 8, "with jitter"
    assert security.refusal_delay_s("b", 8.0) < 2 * REFUSAL_DELAY_S, "another address pays for itself only"
    assert security.refusal_delay_s("a", 8.0 + FAILURES_KEPT_S) < 2 * REFUSAL_DELAY_S, "forgotten after a while"
    for number in range(ADDRESSES_MAX + 5):
        security.refusal_delay_s(f"host{number}", 100.0)
    assert len(security._failures) == ADDRESSES_MAX


def test_a_client_that_asks_where_nobody_is_asked_is_served(tmp_path: Path) -> None:
    """Gotcha 13: AuthDisabledPlugin."""

    async def main() -> None:
        async with bookie(tmp_path / "b") as server:
            for dialect in Dialect:
                connection = await connect(server, None, dialect, AuthConfig(provider=f"{HERE}:client"))
                assert (await connection.request(READ, 5)).status is Status.NO_LEDGER

    run(main)


def test_a_bookie_whose_files_are_not_there_does_not_start(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match=r"nothing\.pem"):
            async with bookie(tmp_path / "b", ledger=LEDGER, tls={"cert": str(tmp_path / "nothing.pem")}):
                pass

    run(main)


# -- Apache's clients with SASL ------------------------------------------------------------------------------------


@pytest.mark.rule("X2", "X9")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("when", ["together", "behind", "before"])
def test_a_client_that_authenticates_like_apaches_before_tls_has_begun(
    tmp_path: Path, loop: str, dialect: Dialect, when: str
) -> None:
    """Its empty first message in clear, right behind START_TLS, in one piece with it or not; or right before it."""
    authority = Authority(tmp_path)
    users = private(tmp_path / "users", user_line("etl", Secret("word")))
    options = {"tls": served_by(authority.server()), "auth": {"provider": "sasl", "options": {"file": users}}}
    context = ssl.create_default_context(cafile=authority.ca)

    def auth(token: bytes) -> bytes:
        return wire.encode_request(wire.Auth("sasl", token), dialect, 2)

    async def next_reply(raw: Raw, spoken: Dialect) -> wire.Reply:
        frame = await raw.frame()
        assert frame is not None
        return wire.decode_reply(frame[4:], spoken)[1]

    async def answer(raw: Raw) -> bytes:
        reply = await next_reply(raw, dialect)
        assert isinstance(reply, wire.AuthReply) and reply.status is Status.OK
        return reply.payload

    async def main() -> None:
        async with bookie(tmp_path / "b", **options) as server, Raw.connect(server.address) as raw:
            if when == "together":
                raw.send(START_TLS + auth(b""))
            elif when == "before":
                raw.send(auth(b"") + START_TLS)
            else:
                raw.send(START_TLS)
                while not server.port.connections.connections:  # type: ignore[union-attr]  # noqa: ASYNC110
                    await asyncio.sleep(0)
                raw.send(auth(b""))
            assert await next_reply(raw, Dialect.V3) == wire.StartTlsReply(Status.OK)
            await raw.writer.start_tls(context, server_hostname="127.0.0.1")
            machine = DigestClient("etl", Secret("word"), b"c" * 32)
            raw.send(auth(machine.respond(await answer(raw))))
            machine.accept(await answer(raw))
            raw.send(wire.encode_request(READ, dialect, 3))
            assert (await next_reply(raw, dialect)).status is Status.NO_LEDGER

    run(main, loop)


@pytest.mark.rule("X9")
@pytest.mark.parametrize("provider", ["sasl", "token"])
def test_a_bookie_with_a_provider_of_ours_starts_only_with_what_it_needs(tmp_path: Path, provider: str) -> None:
    async def start(**options: Any) -> None:
        async with bookie(tmp_path / "b", **options):
            pass

    file = private(tmp_path / "file", "")
    with pytest.raises(ConfigError, match=r"auth\.options\.file"):
        run(lambda: start(tls=served_by(Authority(tmp_path).server()), auth={"provider": provider}))
    in_clear: dict[str, Any] = {"provider": provider, "options": {"file": file}}
    if provider == "sasl":
        with pytest.raises(ConfigError, match='"sasl" needs TLS'):
            run(lambda: start(auth=in_clear))
        in_clear["insecure"] = True
    run(lambda: start(auth=in_clear))


@pytest.mark.rule("X9")
def test_a_token_is_neither_shown_nor_taken_in_clear_beyond_this_machine(tmp_path: Path) -> None:
    """Two simulated hosts, and a client of ours; then one that shows it anyway."""
    keys = signing_key_line("k1")
    token = issue(TokenFile.parse(keys, "keys"), "etl", 7, end=1 << 32).reveal()
    ours = {"provider": "token", "options": {"file": private(tmp_path / "keys", keys)}}
    shown = AuthConfig(provider="token", options={"file": private(tmp_path / "mine", token)})

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        node = cluster.world.node("client")
        where = Address("b", 3181)
        security = ClientSecurity(node.seams.net, node.seams.rng, None, shown)
        with pytest.raises(SecureConnectionError, match="no authentication with b:3181: a token is shown over TLS"):
            await node.run(security.connect(where, BookieId("b1"), Dialect.V3, timeout_s=5))
        connection = await node.run(connect_bookie(node.seams.net, where, Dialect.V3, timeout_s=5))
        reply = await node.run(connection.request(wire.Auth("bk-token", token.encode()), 20))
        assert reply.status is Status.UNAUTHORIZED

    run_simulated(main, auth=ours)
