from __future__ import annotations

import pytest

from segments.errors import StreamConfigError
from segments.remote.gateway_address import GatewayAddresses, GatewayCredentials, is_gateway_uri


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
    files = {"ca.pem": b"CA", "token": b" secret \n"}
    environment = {"BK_TLS_CA": "ca.pem", "BK_GATEWAY_TOKEN_FILE": "token"}
    access = GatewayCredentials.from_environment(environment, files.__getitem__)
    assert access.token is not None
    assert (access.ca, access.token.reveal(), access.is_encrypted) == (b"CA", "secret", True)
    assert not GatewayCredentials.from_environment({}, files.__getitem__).is_encrypted
