"""The port is taken before there is anyone to serve."""

from __future__ import annotations

import asyncio

from bookkeeper.bookie.connections.early_listener import EarlyListener
from bookkeeper.ids import Address
from bookkeeper.net.in_process import InProcessNet
from tests.bookkeeper.bookie.house import RawPeer


async def test_who_comes_too_early_or_too_late_is_sent_away() -> None:
    net, early_listener = InProcessNet(), EarlyListener()
    early_listener.listener = await net.listen(Address("here", 1), early_listener.accept)
    early = await net.connect(Address("here", 1), RawPeer, timeout_s=1)
    await asyncio.sleep(0.01)
    assert early.closed
    early_listener.accepting = RawPeer
    served = await net.connect(Address("here", 1), RawPeer, timeout_s=1)
    await asyncio.sleep(0.01)
    assert not served.closed
    early_listener.close()
    early_listener.close()
    assert not net.listening
