"""Looks whether a port is free, before a server is started that needs it."""

from __future__ import annotations

import socket

from bookkeeper.errors import ConfigError, in_words


def require_free_port(host: str, port: int, what: str, otherwise: str) -> None:
    """Check that a port is free.

    Args:
        what: what should listen there.
        otherwise: what else the user can do.

    Raises:
        ConfigError: another program listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            raise ConfigError(
                f"port {port} of {host}, where the {what} should listen, is not free ({in_words(error)}): "
                f"end the program that listens there, {otherwise}"
            ) from error
