"""TLS, client certificates and tokens, by the code that the WebHDFS gateway uses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.secret import Secret
from bookkeeper.testing.certificates import Authority, Certificate
from segments.errors import StreamAccessError, StreamUnavailableError
from segments.gateway import append_calls
from segments.gateway.port_security import certificate_of, check_files, token_of
from segments.remote import GatewayCredentials, connect, gateway_channels
from segments.rpc.methods import METHODS
from tests.segments.gateway.clusters import CONFIG, served


def test_a_token_comes_in_the_metadata() -> None:
    assert token_of([("x", "y"), ("authorization", "Bearer abc")]) == "abc"
    assert token_of([("authorization", "Basic abc")]) is None
    assert token_of([("authorization", "Bearer ")]) is None
    assert token_of([]) is None


def test_a_certificate_is_shown_as_the_ssl_module_shows_it() -> None:
    assert certificate_of({}) is None
    shown = certificate_of({"x509_pem_cert": [b"pem"], "x509_common_name": [b"me"], "x509_dns": [b"host"]})
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
    monkeypatch.setattr(append_calls, "CREDENTIALS_S", 0.0)
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
            async with asyncio.timeout(30):
                while True:
                    await writer.append(b"until the file is read again")


def credentials_of(trusted: Authority, client: Certificate) -> GatewayCredentials:
    ca, certificate, key = (Path(path).read_bytes() for path in (trusted.ca, client.cert, client.key))
    return GatewayCredentials(ca=ca, certificate=certificate, key=key)


async def test_with_a_client_authority_only_its_clients_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 1.0)
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
                else:
                    with pytest.raises(refusal):
                        await namespace.open("s")
