"""The port of a bookie: taken before it serves, answered while it serves, given back at the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.connections.bookie_port import BookiePort, EarlyListener
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import Address, LedgerId
from bookkeeper.metrics import Metrics
from bookkeeper.net.connection import connect_bookie
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.house import House, RawPeer, run
from tests.bookkeeper.client.scripted import settled


def port_of(house: House, **options: Any) -> BookiePort:
    given = {"metadata_uri": "memory:", "directory": "/data", "insecure": True, "listen": "there:7", **options}
    return BookiePort(config_from(given), replace(house.node.seams, net=house.net), Metrics())


def test_who_comes_before_it_serves_is_sent_away_and_so_is_who_comes_afterwards() -> None:
    async def main(house: House) -> None:
        port = port_of(house)
        port.secure()
        assert await port.bind(None) == 7 and port.address == Address("there", 7) and not port.encrypts
        early = await house.net.connect(port.address, RawPeer, timeout_s=1)
        await settled()
        assert early.closed
        port.serve(house.bookie, lambda: None)
        client = await connect_bookie(house.net, port.address)
        request = wire.ForceLedger(LedgerId(1))
        assert (await client.request(request, 5)).status is Status.OK
        port.close()
        with pytest.raises(OSError):
            await house.net.connect(port.address, RawPeer, timeout_s=1)
        assert (await client.request(request, 5)).status is Status.OK, "who was served is served on"
        await port.close_and_wait()
        await port.close_and_wait()
        with pytest.raises(BookKeeperError):
            await client.request(request, 5)

    run(main)


def test_a_port_that_the_configuration_leaves_open_is_the_one_that_it_had() -> None:
    async def main(house: House) -> None:
        port = port_of(house, listen="there:0", advertise="outside:9")
        assert await port.bind(4711) == 4711
        assert port.address == Address("outside", 9), "clients reach it elsewhere"
        await port.close_and_wait()
        assert await port_of(house, listen="there:5").bind(4711) == 5, "the configuration names one"

    run(main)


def test_requests_in_progress_are_waited_for_and_not_for_ever() -> None:
    async def main(house: House) -> None:
        port, loop = port_of(house, drain_s=2), asyncio.get_running_loop()
        began = loop.time()
        await port.drain()
        assert loop.time() == began
        assert port.admission.admit(10)
        loop.call_later(1, port.admission.release, 10)
        await port.drain()
        assert 1 <= loop.time() - began < 1.1
        assert port.admission.admit(10)
        await port.drain()
        assert 3 <= loop.time() - began < 3.2

    run(main)


def test_who_asks_for_no_security_has_none_and_what_never_leaves_the_process_is_not_encrypted() -> None:
    async def main(house: House) -> None:
        clear = port_of(house)
        clear.secure()
        assert clear.security is None and not clear.encrypts
        port = port_of(house, tls={"mode": "required", "cert": "cert.pem", "key": "key.pem"})
        port.secure()
        assert port.security is not None and not port.encrypts
        await port.close_and_wait()

    run(main)


async def test_who_comes_too_early_or_too_late_is_sent_away() -> None:
    net, early_listener = InProcessNet(), EarlyListener()
    early_listener.listener = await net.listen(Address("here", 1), early_listener.accept)
    early = await net.connect(Address("here", 1), RawPeer, timeout_s=1)
    await settled()
    assert early.closed
    early_listener.accepting = RawPeer
    served = await net.connect(Address("here", 1), RawPeer, timeout_s=1)
    await settled()
    assert not served.closed
    early_listener.close()
    early_listener.close()
    assert not net.listening
