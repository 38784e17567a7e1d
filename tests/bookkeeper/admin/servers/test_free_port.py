"""A port that another program has is refused before anything is started."""

from __future__ import annotations

import socket

import pytest

from bookkeeper.admin.servers.free_port import require_free_port
from bookkeeper.errors import ConfigError


def test_a_port_is_taken_until_its_program_ends() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"port {port} of 127.0.0.1, where the console should listen, is not free"
        ):
            require_free_port("127.0.0.1", port, "console", "choose another port")
    require_free_port("127.0.0.1", port, "console", "choose another port")
