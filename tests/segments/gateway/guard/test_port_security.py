"""TLS, client certificates and tokens, by the code that the WebHDFS gateway uses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.gateways import long_requests
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.authentication import certificate_name, roles_of
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.secret import Secret
from examples.certificates import Authority, Certificate
from segments.errors import StreamAccessError, StreamUnavailableError
from segments.gateway.guard.port_security import certificate_of, check_files, token_of, units_of
from segments.protocol.methods import METHODS
from segments.remote import GatewayCredentials, append_pipe, connect, gateway_channels
from tests.segments.gateway.clusters import CONFIG, served


def test_a_token_comes_in_the_metadata() -> None:
    assert token_of([("x", "y"), ("authorization", "Bearer abc")]) == "abc"
    assert token_of([("authorization", "Basic abc")]) is None
    assert token_of([("authorization", "Bearer ")]) is None
    assert token_of([]) is None
    assert token_of([("authorization", "Bearer abc"), ("authorization", "Bearer def")]) is None, "which one?"


def test_a_certificate_is_shown_as_the_ssl_module_shows_it() -> None:
    assert certificate_of({}) is None
    shown = certificate_of({"x509_pem_cert": [b"pem"], "x509_common_name": [b"me"], "peer_dns": [b"host"]})
    assert shown == {"subjectAltName": (("DNS", "host"),), "subject": ((("commonName", "me"),),)}


def test_optional_certificates_are_refused_because_grpc_cannot_ask_for_them() -> None:
    check_files(None)
    check_files(ServerTlsFiles(certificate="c", key="k", client_ca="a"))
    with pytest.raises(ConfigError, match="every client for a certificate, or none"):
        check_files(ServerTlsFiles(certificate="c", key="k", client_ca="a", client_certificates="optional"))


def token_file(tmp_path: Path, *roots: str) -> tuple[Path, Secret]:
    path, token = tmp_path / "tokens", new_token()
    path.write_text(token_line("someone", token, roots))
    path.chmod(0o600)
    return path, token


async def test_a_token_is_valid_for_its_streams_and_no_others(tmp_path: Path) -> None:
    path, token = token_file(tmp_path, "/mine")
    async with served(tmp_path, access=AccessConfig(token_file=str(path))) as gateway:
        uri = f"grpc://{gateway.address}"
        async with connect(uri, access=GatewayCredentials(token=token)) as namespace:
            await namespace.create("mine/one", config=CONFIG)
            async with (await namespace.open("mine/one")).writer() as writer:
                await writer.append(b"v")
            with pytest.raises(StreamAccessError, match="valid below /mine"):
                await namespace.create("other", config=CONFIG)
            assert [name async for name in namespace.list()] == ["mine/one"]
            assert await namespace.verify("mine/one") == ()
            for name in (None, "other"):
                with pytest.raises(StreamAccessError, match="valid below /mine"):
                    await namespace.verify(name)
        for shown in (GatewayCredentials(), GatewayCredentials(token=new_token())):
            async with connect(uri, access=shown) as namespace:
                with pytest.raises(StreamAccessError, match="token"):
                    await namespace.open("mine/one")


async def test_no_call_of_any_service_is_answered_for_a_stream_of_others(tmp_path: Path) -> None:
    """Every call that names a stream looks whether its caller may use it, before it does anything."""
    path, token = token_file(tmp_path, "/mine")
    async with (
        served(tmp_path, access=AccessConfig(token_file=str(path))) as gateway,
        connect(f"grpc://{gateway.address}", access=GatewayCredentials(token=token)) as namespace,
    ):
        assert gateway._namespace is not None
        other = await gateway._namespace.create("other", config=CONFIG)
        async with other.cursor("c") as cursor:
            state = await cursor.state()
        for key, method in METHODS.items():
            if "stream" not in method.request.DESCRIPTOR.fields_by_name or method.streams_requests:
                continue
            fields = {"stream": "other", "name": "c", "new_name": "mine/x", "prefix": "other"}
            named = {name: each for name, each in fields.items() if name in method.request.DESCRIPTOR.fields_by_name}
            request = method.request(**named)
            with pytest.raises(StreamAccessError, match="valid below /mine"):
                if method.streams_replies:
                    async for _ in namespace.channels.stream(key, request):
                        raise AssertionError(f"{key} answers")
                else:
                    await namespace.channels.call(key, request)
        assert await other.cursor("c").state() == replace(state, owner="")


async def test_a_streaming_append_ends_when_its_token_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_pipe, "STALLED_S", 30 * stretch())  # a gateway that is slow is no gateway that is away
    monkeypatch.setattr(long_requests, "LOOK_S", 0.01)
    path, token = token_file(tmp_path)
    async with (
        served(tmp_path, access=AccessConfig(token_file=str(path), reload_s=0.05)) as gateway,
        connect(f"grpc://{gateway.address}", access=GatewayCredentials(token=token)) as namespace,
    ):
        stream = await namespace.create("s", config=CONFIG)
        writer = await stream.writer()
        await writer.append(b"while it was valid")
        path.write_text(token_line("other", new_token()))
        with pytest.raises(StreamAccessError, match="credentials of this call are no longer valid"):
            async with asyncio.timeout(30 * stretch()):
                while True:
                    await writer.append(b"until the file is read again")


def contents(*files: str) -> str:
    return "".join(Path(file).read_text() for file in files)


def credentials_of(trusted: Authority, client: Certificate) -> GatewayCredentials:
    ca, certificate, key = (Path(path).read_bytes() for path in (trusted.ca, client.cert, client.key))
    return GatewayCredentials(ca=ca, certificate=certificate, key=key)


async def test_with_a_client_authority_only_its_clients_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    server, revoked = authority.server("gateway"), authority.client("revoked")
    files = ServerTlsFiles(
        certificate=server.cert, key=server.key, client_ca=authority.ca, crl=authority.revocations(revoked)
    )
    async with served(tmp_path, access=AccessConfig(tls=files)) as gateway:
        for client, refusal in (
            (authority.client("good"), None),
            (revoked, StreamAccessError),
            (stranger.client("stranger"), StreamUnavailableError),
        ):
            shown = credentials_of(authority, client)
            async with connect(f"grpcs://{gateway.address}", access=shown) as namespace:
                if refusal is None:
                    await namespace.create("s", config=CONFIG)
                    continue
                if refusal is StreamUnavailableError:  # the others have all the time that they need to shake hands
                    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 1.0)
                with pytest.raises(refusal):
                    await namespace.open("s")


def shake_hands(address: Address, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
    plain = socket.create_connection(address, timeout=20 * stretch())
    return context.wrap_socket(plain, server_hostname="127.0.0.1", session=session)


def client_of(authority: Authority, client: Certificate, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(client.cert, client.key)
    context.set_alpn_protocols(["h2"])
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@pytest.mark.rule("X3", "X8")
async def test_old_versions_of_tls_are_refused_though_grpc_has_no_setting_for_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    server, client = authority.server("gateway"), authority.client()
    files = ServerTlsFiles(certificate=server.cert, key=server.key, client_ca=authority.ca)
    async with served(tmp_path, access=AccessConfig(tls=files)) as gateway:
        assert gateway.address is not None
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = client_of(authority, client, version)
            with await asyncio.to_thread(shake_hands, gateway.address, context) as connection:
                assert connection.selected_alpn_protocol() == "h2"
                assert connection.compression() is None
        context = client_of(authority, client, ssl.TLSVersion.TLSv1_1)
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(shake_hands, gateway.address, context)


@pytest.mark.rule("X3", "X8")
async def test_a_client_refuses_a_gateway_with_an_old_version_of_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 0.0)
    authority = Authority(tmp_path)
    shown = authority.server("gateway")
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_1):
        told: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.load_cert_chain(shown.cert, shown.key)
        context.set_alpn_protocols(["h2"])

        def shaken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, told: list[str | None] = told) -> None:
            told.append(writer.get_extra_info("ssl_object").version())
            writer.close()

        async with await asyncio.start_server(shaken, "127.0.0.1", 0, ssl=context) as listening:
            address = listening.sockets[0].getsockname()
            access = GatewayCredentials(ca=credentials_of(authority, authority.client()).ca)
            async with connect(f"grpcs://127.0.0.1:{address[1]}", access=access) as namespace:
                with pytest.raises(StreamUnavailableError):
                    await namespace.open("s")
        assert told[:1] == (["TLSv1.2"] if newest is ssl.TLSVersion.TLSv1_2 else [])


@pytest.mark.rule("X15")
async def test_a_revoked_certificate_is_refused_in_the_next_call_also_of_an_open_or_a_resumed_connection(
    tmp_path: Path,
) -> None:
    """gRPC looks at no lists, and resumes sessions: what counts is the look with each call."""
    authority = Authority(tmp_path / "ca")
    server, client = authority.server("gateway"), authority.client("etl")
    files = ServerTlsFiles(certificate=server.cert, key=server.key, client_ca=authority.ca, crl=authority.revocations())
    async with (
        served(tmp_path, access=AccessConfig(tls=files)) as gateway,
        connect(f"grpcs://{gateway.address}", access=credentials_of(authority, client)) as namespace,
    ):
        assert gateway.access is not None
        await namespace.create("s", config=CONFIG)
        for revocations in ((client,), ()):
            authority.revocations(*revocations)
            gateway.access.refresh()
            if revocations:
                with pytest.raises(StreamAccessError, match="revoked"):
                    await namespace.open("s")
            else:
                await namespace.open("s")


@pytest.mark.rule("X15")
async def test_a_certificate_whose_authority_was_removed_is_refused_in_the_next_call(tmp_path: Path) -> None:
    """Cause: only lists were looked at, so an open or a resumed connection of a removed authority went on for ever."""
    ours, theirs = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "theirs", "theirs")
    server, clients = ours.server("gateway"), tmp_path / "clients.pem"
    alone, both = contents(ours.ca), contents(ours.ca, theirs.ca)
    clients.write_text(both)
    files = ServerTlsFiles(certificate=server.cert, key=server.key, client_ca=str(clients))
    async with (
        served(tmp_path, access=AccessConfig(tls=files)) as gateway,
        connect(f"grpcs://{gateway.address}", access=credentials_of(ours, ours.client("a"))) as of_ours,
        connect(f"grpcs://{gateway.address}", access=credentials_of(ours, theirs.client("b"))) as of_theirs,
    ):
        assert gateway.access is not None
        await of_theirs.create("s", config=CONFIG)
        for authorities in (alone, both):
            clients.write_text(authorities)
            gateway.access.refresh()
            if authorities != both:
                with pytest.raises(StreamAccessError, match="not accepted"):
                    await of_theirs.open("s")
            await of_ours.open("s")
        await of_theirs.open("s")


@pytest.mark.rule("X15")
async def test_after_the_end_of_a_list_nobody_can_show_that_he_is_not_on_it(
    tmp_path: Path,
) -> None:
    """Cause: only the names of a list counted, so one that had ended revoked nothing of what came after it."""
    authority = Authority(tmp_path / "ca")
    server = authority.server("gateway")
    crl = authority.revocations(days=-1)
    files = ServerTlsFiles(certificate=server.cert, key=server.key, client_ca=authority.ca, crl=crl)
    access = credentials_of(authority, authority.client("good"))
    async with (
        served(tmp_path, access=AccessConfig(tls=files)) as gateway,
        connect(f"grpcs://{gateway.address}", access=access) as namespace,
    ):
        assert gateway.access is not None
        with pytest.raises(StreamAccessError, match="the list of revoked ones has ended"):
            await namespace.create("s", config=CONFIG)
        authority.revocations()
        gateway.access.refresh()
        await namespace.create("s", config=CONFIG)


def test_roles_are_read_of_the_subject_as_grpc_writes_it() -> None:
    subject = rb"CN=etl\,\ x,OU=second,OU=0:writer\,reader\;1:c,O=a\2Cb"
    assert units_of(subject.decode()) == ["0:writer,reader;1:c", "second"]
    shown = certificate_of({"x509_pem_cert": [b"pem"], "x509_common_name": [b"etl"], "x509_subject": [subject]})
    assert shown is not None
    assert roles_of(shown) == ("writer", "reader")
    assert certificate_name(shown) == "etl"
    assert units_of("") == []
