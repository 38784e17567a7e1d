from __future__ import annotations

import pytest

from bookkeeper.secret import Secret
from segments.arguments import is_gateway_uri
from segments.errors import StreamConfigError
from segments.remote.gateway_address import GatewayAddresses, GatewayCredentials


def test_an_address_names_one_gateway_or_several() -> None:
    assert GatewayAddresses.parse("grpc://h:1") == GatewayAddresses(("h:1",), False)
    assert GatewayAddresses.parse("grpcs://h:1,g:2/") == GatewayAddresses(("h:1", "g:2"), True)
    assert is_gateway_uri("grpc://h:1")
    assert not is_gateway_uri("zk://h:1")


@pytest.mark.parametrize("uri", ["grpc://", "grpc://h", "zk://h:1", "grpc://h:1,,g:2", "grpc://h:x"])
def test_other_addresses_are_refused_with_the_form(uri: str) -> None:
    with pytest.raises(StreamConfigError, match="grpc://HOST:PORT"):
        GatewayAddresses.parse(uri)


def test_what_a_client_shows_comes_from_files_that_the_environment_names() -> None:
    public, private = {"ca.pem": b"CA", "cert.pem": b"CERT"}, {"etl": b" secret \n", "etl.pem": b"KEY"}
    environment = {
        "BK_TLS_CA": "ca.pem",
        "BK_TLS_CERT": "cert.pem",
        "BK_TLS_KEY": "etl.pem",
        "BK_GATEWAY_TOKEN_FILE": "etl",
    }
    access = GatewayCredentials.from_environment(environment, public.__getitem__, private.__getitem__)
    assert access.token is not None
    assert (access.ca, access.certificate, access.key) == (b"CA", b"CERT", b"KEY")
    assert (access.token.reveal(), access.is_encrypted) == ("secret", True)
    assert not GatewayCredentials.from_environment({}, public.__getitem__, private.__getitem__).is_encrypted


@pytest.mark.rule("X43")
def test_a_certificate_with_its_key_is_a_file_of_secrets() -> None:
    """Cause: a file was read as a secret if its path had the word key or token in it, whatever was in the file."""
    files = {"both.pem": b"-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n"}
    read = []

    def private(path: str) -> bytes:
        read.append(path)
        return files[path]

    access = GatewayCredentials.from_environment({"BK_TLS_CERT": "both.pem"}, files.__getitem__, private)
    assert (access.key, read) == (files["both.pem"], ["both.pem"])


@pytest.mark.rule("X2")
def test_a_token_goes_to_this_machine_or_by_tls() -> None:
    token = Secret("t")
    for address in ("127.0.0.1:1", "[::1]:1", "localhost:1"):
        GatewayCredentials(token=token).require_protected(address)
    for address in ("h:1", "10.0.0.1:1", "[2001:db8::1]:1", "no address"):
        GatewayCredentials().require_protected(address)
        GatewayCredentials(token=token, tls=True).require_protected(address)
        with pytest.raises(StreamConfigError, match=r"is not sent to another host .* grpcs://"):
            GatewayCredentials(token=token).require_protected(address)
