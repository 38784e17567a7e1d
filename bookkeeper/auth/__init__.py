"""Who is on the other end of a connection: providers of authentication, both sides.

A provider is chosen by its explicitly configured name and never looked for elsewhere (X46): ``none``, ``tls`` (the
certificate of the TLS handshake), or ``MODULE:ATTRIBUTE`` for one of your own (:mod:`bookkeeper.auth.provider`).
"""

from __future__ import annotations

from bookkeeper.auth.certificate import EXPIRES_SOON_S, Names, admitted, not_after
from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.loading import client_provider, server_provider
from bookkeeper.auth.provider import (
    DISABLED,
    TOKEN_MAX,
    Answer,
    ClientExchange,
    ClientProvider,
    Peer,
    ServerExchange,
    ServerProvider,
)

__all__ = [
    "DISABLED",
    "EXPIRES_SOON_S",
    "TOKEN_MAX",
    "Answer",
    "AuthConfig",
    "ClientExchange",
    "ClientProvider",
    "Names",
    "Peer",
    "ServerExchange",
    "ServerProvider",
    "admitted",
    "client_provider",
    "not_after",
    "server_provider",
]
