from __future__ import annotations

import pytest

from bookkeeper.bookie.page_address import require_page_address
from bookkeeper.errors import ConfigError
from bookkeeper.ids import Address


@pytest.mark.rule("X1", "X47")
def test_pages_beyond_loopback_have_an_option_of_their_own() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        require_page_address("--http", Address(host, 0), allowed=False, option="--http-insecure")
    beyond = Address("0.0.0.0", 8080)
    with pytest.raises(ConfigError, match=r"--http 0\.0\.0\.0:8080: .* --http-insecure, which opens these pages"):
        require_page_address("--http", beyond, allowed=False, option="--http-insecure")
    require_page_address("--http", beyond, allowed=True, option="--http-insecure")
