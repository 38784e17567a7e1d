"""The gateway's port against everyone who may come: one table, a row for each attempt, a column for each protection."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.metrics import Metrics
from bookkeeper.real import SystemClock, SystemRng
from bookkeeper.secret import Secret
from examples.certificates import Authority, Certificate
from spark_wal.hadoop_tokens import KIND_TLS, HadoopToken
from spark_wal.webhdfs.access.authentication import BAD_TOKEN, NO_CERTIFICATE, NO_TOKEN, TEXTS
from spark_wal.webhdfs.http.http_server import HttpServer
from spark_wal.webhdfs.ownership import file_system
from tests.spark_wal.webhdfs.wire import Place

STATUS: Final = "/webhdfs/v1/?op=GETFILESTATUS"
NOTHING: Final = "no answer"


@dataclass
class Town:
    """Certificates and tokens, good and bad."""

    directory: Path

    def __post_init__(self) -> None:
        self.ours = Authority(self.directory / "ours")
        self.theirs = Authority(self.directory / "theirs", "another authority")
        self.server = self.ours.server("gateway", hosts=["127.0.0.1", "localhost"])
        self.client = self.ours.client("alice", uris=["spiffe://example.org/alice"])
        self.expired_client = self.ours.client("late", from_days=-40, days=30)
        self.stranger = self.theirs.client("mallory")
        self.token, self.limited, self.wrong = new_token(), new_token(), new_token()
        self.token_file = self.directory / "tokens"
        self.token_file.touch(mode=0o600)
        self.write_tokens(
            signing_key_line("k1"), token_line("alice", self.token), token_line("etl", self.limited, ["/etl"])
        )

    def write_tokens(self, *lines: str) -> None:
        self.token_file.write_text("".join(lines))

    def protection(self, kind: str, server: Certificate | None = None, ca: str | None = None) -> AccessConfig:
        shown = server or self.server
        tls = ServerTlsFiles(
            certificate=shown.cert,
            key=shown.key,
            client_ca=(ca or self.ours.ca) if "mutual" in kind or "either" in kind else None,
            client_certificates="optional" if "either" in kind else "required",
        )
        tokens = str(self.token_file) if "token" in kind or "either" in kind else None
        return AccessConfig(tls=tls, token_file=tokens)

    def trust(self, authority: Authority | None = None, shown: Certificate | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=(authority or self.ours).ca)
        if shown is not None:
            context.load_cert_chain(shown.cert, shown.key)
        return context


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    yield Town(tmp_path_factory.mktemp("town"))


@asynccontextmanager
async def guarded(config: AccessConfig, limits: ConnectionLimits | None = None) -> AsyncIterator[HttpServer]:
    gateway = Place.empty().gateway()
    await gateway.start()
    access = AccessControl(config, SystemClock(), SystemRng(), TEXTS)
    server = HttpServer(gateway, SystemClock(), access=access, limits=limits)
    await server.start(Address("127.0.0.1", 0))
    try:
        yield server
    finally:
        gateway.events.close()
        await server.close()
        await gateway.close()


async def ask(
    server: HttpServer,
    context: ssl.SSLContext | None,
    target: str = STATUS,
    *headers: str,
    host: str = "127.0.0.1",
    method: str = "GET",
    body: bytes = b"",
) -> str:
    """The status line's number and reason; NOTHING if the connection ends first; what our own side objects to."""
    assert server.address is not None
    port = server.address.port
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=host if context else None
        )
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (ssl.SSLError, ConnectionError):
        return NOTHING
    try:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}:{port}", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        data = await asyncio.wait_for(reader.read(), 20)
    except (ssl.SSLError, ConnectionError):
        return NOTHING
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except (ssl.SSLError, ConnectionError):
            pass
    if not data:
        return NOTHING
    head, _, rest = data.partition(b"\r\n\r\n")
    line = head.split(b"\r\n")[0].decode()
    location = next((part for part in head.decode().split("\r\n") if part.lower().startswith("location:")), "")
    text = rest.decode() if rest[:1] in (b"{", b"#") else ""
    return " ".join(part for part in (line.split(" ", 1)[1], location, text) if part)


def put(target: str, source: str) -> None:
    """Replace what is in a file."""
    Path(target).write_bytes(Path(source).read_bytes())


def bearer(token: Secret) -> str:
    return f"Authorization: Bearer {token.reveal()}"


def delegated(token: Secret) -> str:
    wrapped = HadoopToken("alice", token, "127.0.0.1:1", KIND_TLS).url_string().reveal()
    return f"{STATUS}&delegation={wrapped}"


OK, NO, BAD, NONE = "200 OK", f"401 {NO_TOKEN}", f"401 {BAD_TOKEN}", NOTHING
TABLE: Final = [
    # who comes                     tls   tls+token  mutual  mutual+token  either
    ("in clear",                    NONE, NONE,      NONE,   NONE,         NONE),
    ("TLS 1.1",                     NONE, NONE,      NONE,   NONE,         NONE),
    ("TLS 1.2",                     OK,   NO,        NONE,   NONE,         NO),
    ("nothing shown",               OK,   NO,        NONE,   NONE,         NO),
    ("user.name only",              OK,   NO,        NONE,   NONE,         NO),
    ("wrong token",                 OK,   BAD,       NONE,   NONE,         BAD),
    ("token of another form",       OK,   BAD,       NONE,   NONE,         BAD),
    ("token",                       OK,   OK,        NONE,   NONE,         OK),
    ("delegation",                  OK,   OK,        NONE,   NONE,         OK),
    ("delegation, plain",           OK,   OK,        NONE,   NONE,         OK),
    ("certificate",                 OK,   NO,        OK,     NO,           OK),
    ("certificate, wrong token",    OK,   BAD,       OK,     BAD,          BAD),
    ("certificate and token",       OK,   OK,        OK,     OK,           OK),
    ("certificate of a stranger",   OK,   NO,        NONE,   NONE,         NONE),
    ("expired certificate",         OK,   NO,        NONE,   NONE,         NONE),
]  # fmt: skip
KINDS: Final = ("tls", "tls+token", "mutual", "mutual+token", "either")


async def come(server: HttpServer, town: Town, who: str) -> str:
    shown = {
        "certificate": town.client,
        "certificate, wrong token": town.client,
        "certificate and token": town.client,
        "certificate of a stranger": town.stranger,
        "expired certificate": town.expired_client,
    }.get(who)
    context = town.trust(shown=shown)
    if who == "TLS 1.1":
        with pytest.warns(DeprecationWarning):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
    if who == "TLS 1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    targets = {
        "user.name only": f"{STATUS}&user.name=root",
        "delegation": delegated(town.token),
        "delegation, plain": f"{STATUS}&delegation={town.token.reveal()}",
        "token of another form": f"{STATUS}&delegation=AAAA",
    }
    headers = []
    if who.endswith("wrong token"):
        headers = [bearer(town.wrong)]
    elif who in ("token", "certificate and token"):
        headers = [bearer(town.token)]
    answer = await ask(server, None if who == "in clear" else context, targets.get(who, STATUS), *headers)
    return answer.partition(" {")[0]


@pytest.mark.rule("X2", "X3", "X4", "X5", "X8", "X48", "X54")
@pytest.mark.parametrize("kind", KINDS)
async def test_who_is_served(town: Town, kind: str) -> None:
    column = KINDS.index(kind) + 1
    async with guarded(town.protection(kind)) as server:
        found = {row[0]: await come(server, town, row[0]) for row in TABLE}
    assert found == {row[0]: row[column] for row in TABLE}


async def test_a_missing_certificate_is_named_where_the_port_lets_it_in(town: Town) -> None:
    config = town.protection("either")
    optional = AccessConfig(tls=config.tls, insecure=True)
    async with guarded(optional) as server:
        assert await ask(server, town.trust()) == f"401 {NO_CERTIFICATE}"


@pytest.mark.rule("X4")
async def test_a_client_that_verifies_notices_the_wrong_gateway(town: Town) -> None:
    async with guarded(town.protection("tls")) as server:
        assert "certificate" in await ask(server, town.trust(town.theirs))
        assert "mismatch" in await ask(server, town.trust(), host="elsewhere.example.org")
    late = town.ours.server("late", from_days=-40, days=30)
    async with guarded(town.protection("tls", late)) as server:
        assert "expired" in await ask(server, town.trust())


async def test_tls_on_a_port_without_it_ends_at_once(town: Town) -> None:
    async with guarded(AccessConfig()) as server:
        assert await ask(server, town.trust()) == NOTHING


@pytest.mark.rule("X7")
async def test_who_connects_and_says_nothing_is_hung_up_on(town: Town) -> None:
    async with guarded(town.protection("tls"), ConnectionLimits(handshake_s=0.1)) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        await writer.wait_closed()


@pytest.mark.rule("X54")
async def test_files_belong_to_who_was_proven_not_to_who_is_claimed(town: Town) -> None:
    made = "/webhdfs/v1/d?op=MKDIRS&user.name=root"
    for kind, context, headers, owner in (
        ("tls+token", town.trust(), [bearer(town.token)], "alice"),
        ("mutual", town.trust(shown=town.client), [], "spiffe://example.org/alice"),
        ("tls", town.trust(), [], "root"),
    ):
        async with guarded(town.protection(kind)) as server:
            assert (await ask(server, context, made, *headers, method="PUT")).startswith(OK)
            status = await ask(server, context, "/webhdfs/v1/d?op=GETFILESTATUS", *headers)
        assert json.loads(status.removeprefix(OK))["FileStatus"]["owner"] == owner


@pytest.mark.rule("X57")
async def test_a_token_is_good_below_its_roots_only(town: Town) -> None:
    async with guarded(town.protection("tls+token")) as server:

        async def tried(method: str, target: str) -> str:
            answer = await ask(server, town.trust(), f"/webhdfs/v1{target}", bearer(town.limited), method=method)
            return answer[:3]

        assert await tried("PUT", "/etl/a?op=MKDIRS") == "200"
        assert await tried("GET", "/?op=GETFILESTATUS") == "200"
        assert await tried("GET", "/?op=LISTSTATUS") == "403"
        assert await tried("PUT", "/other?op=MKDIRS") == "403"
        assert await tried("PUT", "/etl2?op=MKDIRS") == "403"
        assert await tried("PUT", "/etl/a?op=RENAME&destination=/other") == "403"
        assert await tried("PUT", "/etl/a?op=RENAME&destination=/etl/b") == "200"
        assert await tried("DELETE", "/?op=DELETE&recursive=true") == "403"
        assert await ask(server, town.trust(), "/events?prefix=/etl", bearer(town.limited)) == "403 Forbidden"
        assert await ask(server, town.trust(), "/events", bearer(town.limited)) == "403 Forbidden"


async def test_redirects_are_encrypted_and_lead_to_the_host_that_was_asked(town: Town) -> None:
    async with guarded(town.protection("tls")) as server:
        assert server.address is not None
        target = "/webhdfs/v1/f?op=CREATE"
        told = await ask(server, town.trust(), target, host="localhost", method="PUT")
        assert f"Location: https://localhost:{server.address.port}/webhdfs/v1/f?" in told
        made = await ask(server, town.trust(), f"{target}&namenoderpcaddress=x", method="PUT", body=b"x")
        assert f"Location: swebhdfs://127.0.0.1:{server.address.port}/f" in made


@pytest.mark.rule("X48")
async def test_pages_ask_too_and_health_says_little(town: Town) -> None:
    async with guarded(town.protection("tls+token")) as server:
        for page in ("/metrics", "/events", "/nowhere"):
            assert await ask(server, town.trust(), page) == NO
        health = await ask(server, town.trust(), "/health")
        assert json.loads(health.removeprefix(OK)) == {"role": "owner", "sure": True}
        metrics = await ask(server, town.trust(), "/metrics", bearer(town.token))
        assert "gateway_unauthenticated_total" in metrics


# -- access tokens ---------------------------------------------------------------------------------------


def form(name: str, secret: str, grant: str = "client_credentials") -> bytes:
    return f"grant_type={grant}&client_id={name}&client_secret={secret}".encode()


async def fetch(server: HttpServer, town: Town, body: bytes, *headers: str) -> str:
    return await ask(server, town.trust(), "/oauth2/token", *headers, method="POST", body=body)


@pytest.mark.rule("X9", "X11")
async def test_a_token_buys_access_tokens(town: Town) -> None:
    async with guarded(town.protection("tls+token")) as server:
        for body, headers in (
            (form("alice", town.token.reveal()), ()),
            (
                b"grant_type=client_credentials",
                ("Authorization: Basic " + base64.b64encode(f"alice:{town.token.reveal()}".encode()).decode(),),
            ),
        ):
            bought = json.loads((await fetch(server, town, body, *headers)).removeprefix(OK))
            assert bought["token_type"] == "Bearer"
            assert bought["expires_in"] >= 600
            assert (await ask(server, town.trust(), STATUS, bearer(Secret(bought["access_token"])))).startswith(OK)
            again = form("alice", bought["access_token"])
            assert "invalid_client" in await fetch(server, town, again)


@pytest.mark.rule("X11")
async def test_whatever_is_wrong_with_a_client_the_answer_is_the_same(town: Town) -> None:
    async with guarded(town.protection("tls+token")) as server:
        answers = {
            await fetch(server, town, body)
            for body in (
                form("alice", "nonsense"),
                form("nobody", town.token.reveal()),
                form("etl", town.token.reveal()),
            )
        }
        assert answers == {'401 Unauthorized {"error": "invalid_client"}'}
        assert "unsupported_grant_type" in await fetch(server, town, form("alice", town.token.reveal(), "password"))
        assert "invalid_request" in await fetch(server, town, b"x" * 20_000)
        assert (await ask(server, town.trust(), "/oauth2/token")).startswith("405")


async def test_without_tokens_there_is_no_endpoint(town: Town) -> None:
    async with guarded(town.protection("tls")) as server:
        assert (await fetch(server, town, form("alice", "x"))).startswith("404")


@pytest.mark.rule("X6", "X15")
async def test_tokens_that_come_and_go_are_noticed(town: Town, tmp_path: Path) -> None:
    place = Town(tmp_path)
    clock = SteppedClock()
    async with guarded(place.protection("tls+token")) as server:
        assert server._access is not None
        server._access._clock = clock
        bought = json.loads((await fetch(server, place, form("alice", place.token.reveal()))).removeprefix(OK))
        fresh = new_token()
        place.write_tokens(place.token_file.read_text(), token_line("bob", fresh))
        clock.now += 10
        assert (await ask(server, place.trust(), STATUS, bearer(fresh))).startswith(OK)
        lines = [line for line in place.token_file.read_text().splitlines(True) if " alice " not in line]
        place.write_tokens(*lines)
        server._access.refresh()
        for gone in (place.token, Secret(bought["access_token"])):
            assert await ask(server, place.trust(), STATUS, bearer(gone)) == BAD
        place.token_file.chmod(0o644)
        place.write_tokens("nonsense\n")
        server._access.refresh()
        assert (await ask(server, place.trust(), STATUS, bearer(fresh))).startswith(OK)


@pytest.mark.rule("X15")
async def test_a_feed_ends_when_its_token_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_wal.webhdfs.http.http_server.HEARTBEAT_S", 0.02)
    town = Town(tmp_path)
    async with guarded(town.protection("tls+token")) as server:
        assert server.address is not None
        assert server._access is not None
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.address.port, ssl=town.trust(), server_hostname="127.0.0.1"
        )
        writer.write(f"GET /events HTTP/1.1\r\nHost: x\r\n{bearer(town.token)}\r\n\r\n".encode())
        assert b"subscribed" in await reader.readuntil(b"subscribed")
        for _ in range(5):
            await reader.readuntil(b"\n")
        town.write_tokens(token_line("bob", new_token()))
        server._access.refresh()
        assert (await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 20)).endswith(b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()


class SteppedClock(SystemClock):
    """Goes on when it is told to."""

    now = 1e6

    def monotonic(self) -> float:
        return self.now


@pytest.mark.rule("X6")
async def test_certificates_are_replaced_under_a_connection_that_stands(tmp_path: Path) -> None:
    town = Town(tmp_path)
    async with guarded(town.protection("mutual")) as server:
        assert server.address is not None
        assert server._access is not None
        context = town.trust(shown=town.client)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.address.port, ssl=context, server_hostname="127.0.0.1"
        )
        before = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        town.ours.server("gateway", hosts=["127.0.0.1"])
        put(town.ours.ca, town.theirs.ca)
        server._access.refresh()
        writer.write(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()

        assert await ask(server, context) == NOTHING, "a client of the authority that was removed"
        stranger = ssl.create_default_context(cafile=town.server.cert)
        stranger.load_cert_chain(town.stranger.cert, town.stranger.key)
        stranger.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.address.port, ssl=stranger, server_hostname="127.0.0.1"
        )
        assert writer.get_extra_info("ssl_object").getpeercert()["serialNumber"] != before
        writer.close()
        await writer.wait_closed()
        assert (await ask(server, stranger)).startswith(OK)


@pytest.mark.rule("X6")
async def test_a_pair_that_does_not_fit_together_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    town = Town(tmp_path)
    async with guarded(town.protection("tls")) as server:
        assert server._access is not None
        put(town.server.cert, town.client.cert)
        server._access.refresh()
        assert "the old ones stay" in caplog.text
        assert (await ask(server, town.trust())).startswith(OK)
        put(town.server.key, town.client.key)
        server._access.refresh()
        assert "purpose" in await ask(server, town.trust()), "now it is whole, and a client's certificate"


@pytest.mark.rule("X59")
async def test_no_secret_reaches_the_log(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with guarded(town.protection("tls+token")) as server:
        bought = json.loads((await fetch(server, town, form("alice", town.token.reveal()))).removeprefix(OK))
        for target in (delegated(town.token), delegated(town.wrong), "/webhdfs/v1/no?op=OPEN&delegation=x"):
            await ask(server, town.trust(), target)
        await ask(server, town.trust(), STATUS, bearer(Secret(bought["access_token"] + "x")))
    for secret in (town.token.reveal(), town.wrong.reveal(), bought["access_token"]):
        assert secret not in caplog.text


# -- revoked certificates ----------------------------------------------------------------------------------


class Registry:
    """An authority whose list of revocations lies in a file of its own, or among the authorities."""

    def __init__(self, directory: Path, own_file: bool) -> None:
        self.authority = Authority(directory)
        self.own_file = own_file
        self.shown = self.authority.server("gateway", hosts=["127.0.0.1"])
        self.alice, self.mallory = self.authority.client("alice"), self.authority.client("mallory")
        self.ca = directory / "clients.pem"
        self.authorities = Path(self.authority.ca).read_text()
        self.revoke()

    def revoke(self, *revoked: Certificate) -> None:
        text = Path(self.authority.revocations(*revoked)).read_text()
        self.ca.write_text(self.authorities if self.own_file else self.authorities + text)

    def config(self) -> AccessConfig:
        crl = str(self.authority.directory / "crl.pem") if self.own_file else None
        files = ServerTlsFiles(certificate=self.shown.cert, key=self.shown.key, client_ca=str(self.ca), crl=crl)
        return AccessConfig(tls=files)

    def trust(self, shown: Certificate) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.load_cert_chain(shown.cert, shown.key)
        return context


@pytest.mark.rule("X4", "X6", "X15")
@pytest.mark.parametrize("own_file", [True, False])
async def test_a_revoked_certificate_is_refused_without_a_restart(tmp_path: Path, own_file: bool) -> None:
    registry = Registry(tmp_path, own_file)
    async with guarded(registry.config()) as server:
        assert server._access is not None
        for shown in (registry.alice, registry.mallory):
            assert (await ask(server, registry.trust(shown))).startswith(OK)
        registry.revoke(registry.mallory)
        server._access.refresh()
        assert await ask(server, registry.trust(registry.mallory)) == NOTHING
        assert (await ask(server, registry.trust(registry.alice))).startswith(OK)


@pytest.mark.rule("X6", "X15")
async def test_a_first_list_that_comes_later_is_heeded(tmp_path: Path) -> None:
    registry = Registry(tmp_path, own_file=False)
    registry.ca.write_text(registry.authorities)
    async with guarded(registry.config()) as server:
        assert server._access is not None
        assert (await ask(server, registry.trust(registry.mallory))).startswith(OK)
        registry.revoke(registry.mallory)
        server._access.refresh()
        assert await ask(server, registry.trust(registry.mallory)) == NOTHING
        assert (await ask(server, registry.trust(registry.alice))).startswith(OK)


@pytest.mark.rule("X3", "X15")
async def test_no_session_outlives_a_revocation(tmp_path: Path) -> None:
    """Whoever could go on with a session of before would show no certificate."""
    registry = Registry(tmp_path, own_file=True)
    async with guarded(registry.config()) as server:
        assert server.address is not None
        assert server._access is not None
        address = (server.address.host, server.address.port)
        trust = registry.trust(registry.mallory)
        trust.maximum_version = ssl.TLSVersion.TLSv1_2

        def shake(session: ssl.SSLSession | None) -> ssl.SSLSession | None:
            with (
                socket.create_connection(address) as plain,
                trust.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
            ):
                connection.sendall(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert connection.recv(100).startswith(b"HTTP/1.1 200")
                return connection.session

        session = await asyncio.to_thread(shake, None)
        registry.revoke(registry.mallory)
        server._access.refresh()
        with pytest.raises(OSError, match=r"[Rr]evoked|reset|EOF"):
            await asyncio.to_thread(shake, session)


@pytest.mark.rule("X15")
async def test_connections_that_stand_end_when_their_certificate_is_revoked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(tmp_path, own_file=True)
    async with guarded(registry.config()) as server:
        assert server.address is not None
        assert server._access is not None
        open_ones = []
        for shown in (registry.alice, registry.mallory):
            open_ones.append(
                await asyncio.open_connection(
                    "127.0.0.1", server.address.port, ssl=registry.trust(shown), server_hostname="127.0.0.1"
                )
            )
        for reader, writer in open_ones:
            writer.write(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        registry.revoke(registry.mallory)
        server._access.refresh()
        (alices, hers), (mallorys, his) = open_ones
        try:
            await asyncio.wait_for(mallorys.read(), 20)
            await asyncio.wait_for(mallorys.read(), 20)
        except ConnectionError:
            pass
        hers.write(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert b"HTTP/1.1 200" in await asyncio.wait_for(alices.read(), 20)
        for writer in (hers, his):
            writer.close()
            try:
                await writer.wait_closed()
            except (ssl.SSLError, ConnectionError):
                pass
        assert "because its certificate was revoked, or its authority's revocation list is missing" in caplog.text
        assert "has ended: 1\n" in caplog.text


@pytest.mark.rule("X15")
@pytest.mark.parametrize("change", ["removed", "list ended", "added"])
async def test_connections_that_stand_end_when_their_authority_is_no_longer_good(tmp_path: Path, change: str) -> None:
    """Cause: only the names on a list ended connections; those of an authority that was removed, or whose list had
    ended, went on, though a handshake would have refused them."""
    ours, theirs = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "theirs", "theirs")
    shown, both = ours.server("gateway", hosts=["127.0.0.1"]), tmp_path / "clients.pem"

    def accept(*texts: str) -> None:
        both.write_text("".join(Path(each).read_text() for each in texts))

    with_lists = change == "list ended"
    accept(ours.ca, theirs.ca, *((ours.revocations(), theirs.revocations()) if with_lists else ()))
    files = ServerTlsFiles(certificate=shown.cert, key=shown.key, client_ca=str(both))
    async with guarded(AccessConfig(tls=files)) as server:
        assert server.address is not None
        assert server._access is not None

        async def connect(authority: Authority) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            context = ssl.create_default_context(cafile=ours.ca)
            client = authority.client("alice")
            context.load_cert_chain(client.cert, client.key)
            port = server.address.port if server.address else 0
            opened = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
            assert await again(*opened)
            return opened

        async def again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            try:
                writer.write(f"GET {STATUS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20 * stretch())
                length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
                await reader.readexactly(int(length.split(b":")[1]))
            except (OSError, asyncio.IncompleteReadError):
                return False
            return head.startswith(b"HTTP/1.1 200")

        of_ours, of_theirs = await connect(ours), await connect(theirs)
        if change == "removed":
            accept(ours.ca)
        elif change == "added":
            accept(ours.ca, theirs.ca, Authority(tmp_path / "third", "third").ca)
        else:
            accept(ours.ca, theirs.ca, ours.revocations(), theirs.revocations(days=-1))
        server._access.refresh()
        assert await again(*of_ours)
        assert await again(*of_theirs) == (change == "added")
        server._access.refresh()
        assert await again(*of_ours), "it was admitted, and nothing has changed since"
        for _, writer in (of_ours, of_theirs):
            writer.close()
            with suppress(ssl.SSLError, ConnectionError):
                await writer.wait_closed()


@pytest.mark.rule("X6")
async def test_a_list_that_cannot_be_read_is_not_used_and_the_old_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(tmp_path, own_file=True)
    registry.revoke(registry.mallory)
    crl = tmp_path / "crl.pem"
    good = crl.read_text()
    for bad, said in (
        ("", "holds no revocation list"),
        (good.replace("M", "A", 3), "cannot be used"),
        (good + registry.authorities, "holds a certificate"),
    ):
        crl.write_text(bad)
        with pytest.raises(ConfigError, match=said) as refused:
            AccessControl(registry.config(), SystemClock(), SystemRng(), TEXTS)
        assert str(crl) in str(refused.value)
    crl.write_text(good)
    async with guarded(registry.config()) as server:
        assert server._access is not None
        crl.write_text("")
        server._access.refresh()
        assert "the old ones stay" in caplog.text
        assert await ask(server, registry.trust(registry.mallory)) == NOTHING
        assert (await ask(server, registry.trust(registry.alice))).startswith(OK)
        crl.unlink()
        server._access.refresh()
        assert await ask(server, registry.trust(registry.mallory)) == NOTHING


async def test_the_end_of_a_list_is_told_before_it_comes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(tmp_path, own_file=True)
    access = AccessControl(registry.config(), SystemClock(), SystemRng(), TEXTS)
    access.refresh()
    assert "revocation list" not in caplog.text
    metrics = Metrics()
    access.update_metrics(metrics)
    assert 86_000 < metrics.gauge("crl_left_seconds").value <= 86_400
    registry.authority.revocations(days=0.1)
    access.refresh()
    assert "a revocation list ends in" in caplog.text
    registry.authority.revocations(days=-0.1)
    access.refresh()
    assert "a revocation list has ended" in caplog.text


@pytest.mark.rule("X15")
@pytest.mark.parametrize("kind", ["upload", "kept connection"])
async def test_what_is_under_way_ends_when_its_token_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Cause: a token's end was enforced where requests begin, and an upload under way went on as long as it took."""
    monkeypatch.setattr("bookkeeper.gateways.long_requests.LOOK_S", 0.02)
    town = Town(tmp_path)
    async with guarded(town.protection("tls+token")) as server:
        assert server.address is not None
        assert server._access is not None
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.address.port, ssl=town.trust(), server_hostname="127.0.0.1"
        )
        head = f"HTTP/1.1\r\nHost: x\r\n{bearer(town.token)}\r\n"
        writer.write(f"PUT /webhdfs/v1/d?op=MKDIRS {head}\r\n".encode())
        assert (await reader.readuntil(b'{"boolean":true}')).startswith(b"HTTP/1.1 200"), "what was answered stays"
        if kind == "upload":
            target = "/webhdfs/v1/d/f?op=CREATE&namenoderpcaddress=x"
            writer.write(f"PUT {target} {head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".encode())
            await writer.drain()
            async with asyncio.timeout(20 * stretch()):
                while not len(server._long):  # noqa: ASYNC110  # nothing tells when a request begins
                    await asyncio.sleep(0.01)
        town.write_tokens(token_line("bob", new_token()))
        server._access.refresh()
        if kind != "upload":
            writer.write(f"GET {STATUS} {head}\r\n".encode())
        answer = b""
        with suppress(ConnectionError, ssl.SSLError):
            answer = await asyncio.wait_for(reader.read(), 20 * stretch())
        assert answer == b"" if kind == "upload" else answer.startswith(b"HTTP/1.1 401")
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        session = server._gateway.session
        assert session is not None
        assert [each.name for each in await file_system.listing(session, "/d")] == []
