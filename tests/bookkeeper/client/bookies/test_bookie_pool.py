"""Connections: made when needed, shared, given up, tried again later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.client.bookies.bookie_pool import BookiePool, ConnectionPurpose
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import BookieUnavailableError, ClientClosedError, MetadataUnavailableError, SecureConnectionError
from bookkeeper.ids import NO_ENTRY, Address, BookieId, EntryId, LedgerId
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from bookkeeper.wire import Dialect, ReadEntry
from examples.certificates import Authority
from tests.bookkeeper.bookie.listeners import LOOPS, bookie, run
from tests.bookkeeper.client.scripted import ScriptedBookie, connection_of, settled

B1 = BookieId("b1")
CONFIG = ClientConfig(reconnect_delay_min_ms=10, reconnect_delay_max_ms=40)


class House:
    """One scripted bookie on a net inside this process."""

    def __init__(self, config: ClientConfig = CONFIG) -> None:
        self.net = InProcessNet()
        self.bookie = ScriptedBookie("b1")
        self.port = 1
        self.asked = 0
        self.store_away = False
        self.pool = BookiePool(self.net, Random(1), config, self.address_of)

    async def address_of(self, bookie: BookieId) -> Address:
        self.asked += 1
        if self.store_away:
            raise MetadataUnavailableError("away")
        return Address(bookie, self.port)

    async def listen(self) -> None:
        await self.net.listen(Address("b1", self.port), lambda: connection_of(self.bookie))


async def test_callers_of_one_moment_share_one_connection_and_it_is_kept() -> None:
    house = House()
    await house.listen()
    assert house.pool.ready(B1) is None
    one, other = await asyncio.gather(house.pool.get(B1), house.pool.get(B1))
    assert one is other is house.pool.ready(B1) is await house.pool.get(B1)
    assert len(house.bookie.connections) == 1
    await house.pool.close()


@pytest.mark.parametrize("protocol", ["v2", "v3"])
async def test_each_use_has_its_dialect(protocol: str) -> None:
    house = House(ClientConfig(protocol=protocol))
    await house.listen()
    main, batch, lac, recovery = [await house.pool.get(B1, use) for use in ConnectionPurpose]
    assert main.dialect is (Dialect.V2 if protocol == "v2" else Dialect.V3)
    assert batch.dialect is Dialect.V2 and batch is not main
    assert lac.dialect is Dialect.V3 and (lac is main) == (protocol == "v3")
    assert recovery.dialect is main.dialect and (recovery is main) == (protocol == "v3")
    await house.pool.close()


@pytest.mark.rule("P7")
async def test_closing_returns_when_connections_have_ended_also_those_that_nobody_gets_any_more() -> None:
    house = House(ClientConfig(protocol="v2"))
    await house.listen()
    made = [await house.pool.get(B1, use) for use in ConnectionPurpose]
    for connection in made[:2]:
        house.pool.retire(B1, connection)
    await house.pool.close()
    assert all(connection.closed for connection in made)


@pytest.mark.rule("P7")
@pytest.mark.parametrize("loop", LOOPS)
def test_of_a_bookie_that_does_not_say_goodbye_nothing_is_left_open(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encrypted connections end with an exchange of last words: whoever closes waits for it, and not for ever."""
    monkeypatch.setattr("bookkeeper.client.bookies.bookie_pool.GOODBYE_S", 0.2)
    authority = Authority(tmp_path / "ca")
    made = authority.server()

    async def main() -> None:
        async with bookie(tmp_path / "b", tls={"cert": made.cert, "key": made.key}) as server:
            config = ClientConfig(tls=TlsConfig(ca=authority.ca))

            async def address_of(bookie: BookieId) -> Address:
                return server.address

            pool = BookiePool(system_seams().net, Random(1), config, address_of)
            silent = await pool.get(B1)
            await silent.request(ReadEntry(LedgerId(1), EntryId(0)), 30)
            (theirs,) = server.port.connections.connections  # type: ignore[union-attr]
            assert isinstance(theirs, ServerConnection)
            theirs.pause_reading()
            silent.write(bytes(64 << 20))  # more than the system takes: the end does not come by itself
            await pool.close()
            assert silent.closed

    run(main, loop)


async def test_a_bookie_that_cannot_be_reached_is_left_alone_for_a_while_that_grows() -> None:
    house = House(ClientConfig(reconnect_delay_min_ms=20_000, reconnect_delay_max_ms=80_000))
    loop = asyncio.get_running_loop()
    with pytest.raises(BookieUnavailableError, match="nobody listens"):
        await house.pool.get(B1)
    asked = house.asked
    with pytest.raises(BookieUnavailableError, match="b1 could not be reached a moment ago"):
        await house.pool.get(B1)
    assert house.asked == asked
    first = house.pool.pause_left(B1)
    assert 0 < first <= 20
    house.pool.forgive(B1)
    with pytest.raises(BookieUnavailableError):
        await house.pool.get(B1)
    assert 0 < house.pool.pause_left(B1) <= 40
    await house.listen()
    house.pool.forgive(B1)
    assert not (await house.pool.get(B1)).closed
    assert house.pool.pause_left(B1) == 0.0
    assert loop.is_running()
    await house.pool.close()


@pytest.mark.rule("Z12")
async def test_while_the_store_is_away_the_last_known_address_is_used() -> None:
    house = House()
    house.store_away = True
    with pytest.raises(BookieUnavailableError, match="the address of b1 cannot be read"):
        await house.pool.get(B1)
    house.pool.forgive(B1)
    house.store_away = False
    await house.listen()
    (await house.pool.get(B1)).abort()
    await settled()
    house.store_away = True
    assert not (await house.pool.get(B1)).closed
    await house.pool.close()


@pytest.mark.rule("Z12")
async def test_a_bookie_that_was_looked_up_is_reached_while_the_store_is_away() -> None:
    house = House()
    await house.listen()
    house.store_away = True
    await house.pool.look_up([B1])
    house.store_away = False
    await house.pool.look_up([B1])
    await house.pool.look_up([B1])
    house.store_away = True
    assert not (await house.pool.get(B1)).closed
    assert house.asked == 2, "once in vain, and once for all who come after"
    await house.pool.close()


async def test_a_bookie_that_came_back_elsewhere_is_found_there() -> None:
    house = House()
    await house.listen()
    (await house.pool.get(B1)).abort()
    house.port = 2
    await house.listen()
    await settled()
    assert (await house.pool.get(B1)).address.port == 2
    await house.pool.close()


@pytest.mark.rule("W10b")
async def test_a_retired_connection_is_nobodys_any_more_and_ends_when_it_is_unused() -> None:
    house = House()
    await house.listen()
    old = await house.pool.get(B1)
    house.pool.enlist(old)
    house.pool.retire(B1, old)
    new = await house.pool.get(B1)
    assert new is not old
    assert [old.closed] == [False]
    house.pool.dismiss(old)
    await settled()
    assert (old.closed, new.closed) == (True, False)
    house.bookie.silent = True
    waiting = asyncio.ensure_future(new.request(ReadEntry(LedgerId(1), NO_ENTRY), 60))
    await asyncio.sleep(0)
    house.pool.retire(B1, new)
    await settled()
    assert [new.closed] == [False]  # somebody waits for a reply
    with pytest.raises(BookieUnavailableError):
        new.abort()
        await waiting
    await house.pool.close()


async def test_a_closed_pool_connects_no_more() -> None:
    house = House()
    await house.listen()
    connection = await house.pool.get(B1)
    await house.pool.close()
    await settled()
    assert connection.closed
    with pytest.raises(ClientClosedError):
        await house.pool.get(B1)


@pytest.mark.rule("X38")
async def test_why_a_bookie_does_not_serve_us_is_told_once_and_again_after_it_has_served_us(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A certificate that expires is mended, and the next one expires, too."""
    house = House()
    await house.listen()

    async def served(error: SecureConnectionError | None) -> int:
        connection = await house.pool.get(B1)
        connection.close(error)
        while not connection.closed:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)
        return caplog.text.count("its certificate has expired")

    refused = SecureConnectionError("its certificate has expired")
    assert [await served(refused), await served(refused)] == [1, 1]
    assert [await served(None), await served(refused)] == [1, 2]
    await house.pool.close()
