"""The interface, as a provider of one's own keeps it."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.auth.provider import ClientProvider, Peer, ServerProvider
from bookkeeper.errors import AuthenticationError
from tests.bookkeeper.auth import providers


@pytest.mark.rule("X9")
def test_two_sides_come_to_an_end_together() -> None:
    server: ServerProvider = providers.server({})
    client: ClientProvider = providers.client({})

    async def main(word: bytes | None = None) -> str | None:
        ours, theirs = server.exchange(Peer("client:1")), client.exchange(Peer("bookie:1"))
        token: bytes | None = word or await theirs.first()
        principal = None
        while token is not None:
            answer = await ours.answer(token)
            principal = answer.principal
            token = await theirs.answer(answer.payload)
        return principal

    assert asyncio.run(main()) == "tester"
    with pytest.raises(AuthenticationError):
        asyncio.run(main(b"wrong"))
