"""A made-up provider for tests: "hello", "challenge", "response", "welcome", as in the captured exchanges."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any

from bookkeeper.auth.provider import ExchangeResult, Peer
from bookkeeper.errors import AuthenticationError

PLUGIN = "gv-test-plugin"


class _Server:
    def __init__(self, peer: Peer, expected: bytes) -> None:
        self.peer = peer
        self._steps = iter(
            [(expected, ExchangeResult(b"challenge")), (b"response", ExchangeResult(b"welcome", principal="tester"))]
        )

    async def answer(self, payload: bytes) -> ExchangeResult:
        if payload == b"for ever":
            await asyncio.Event().wait()
        if payload == b"trip":
            raise KeyError("a bug of the provider's")
        expected, answer = next(self._steps)
        if not hmac.compare_digest(payload, expected):
            raise AuthenticationError("that was not the word")
        await asyncio.sleep(0)
        return answer


class ServerProvider:
    """Keeps the peers that it was asked about."""

    plugin = PLUGIN

    def __init__(self, expected: bytes = b"hello") -> None:
        self.peers: list[Peer] = []
        self._expected = expected

    def exchange(self, peer: Peer) -> _Server:
        self.peers.append(peer)
        return _Server(peer, self._expected)


class _Client:
    def __init__(self, word: bytes) -> None:
        self._word = word

    async def first(self) -> bytes:
        return self._word

    async def answer(self, payload: bytes) -> bytes | None:
        match payload:
            case b"challenge":
                return b"response"
            case b"welcome":
                return None
        raise AuthenticationError("neither challenge nor welcome")


class ClientProvider:
    def __init__(self, word: bytes = b"hello", plugin: str = PLUGIN) -> None:
        self._word = word
        self.plugin = plugin

    def exchange(self, peer: Peer) -> _Client:
        return _Client(self._word)


def server(options: Mapping[str, Any]) -> ServerProvider:
    return ServerProvider(str(options.get("word", "hello")).encode())


def client(options: Mapping[str, Any]) -> ClientProvider:
    return ClientProvider(str(options.get("word", "hello")).encode(), str(options.get("plugin", PLUGIN)))


def broken(options: Mapping[str, Any]) -> object:
    return object()


class _Named:
    """Believes the name that a client says."""

    async def answer(self, payload: bytes) -> ExchangeResult:
        return ExchangeResult(b"welcome", principal=payload.decode())


class NamesServerProvider:
    """Whoever says a name has it: for tests of what names may do."""

    plugin = "names"

    def exchange(self, peer: Peer) -> _Named:
        return _Named()


def named_server(options: Mapping[str, Any]) -> NamesServerProvider:
    return NamesServerProvider()


def named_client(options: Mapping[str, Any]) -> ClientProvider:
    return ClientProvider(str(options["name"]).encode(), "names")
