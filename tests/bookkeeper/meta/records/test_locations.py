"""Q6, X29: the last known location of each bookie."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import ConfigError, MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.meta.records.locations import SIZE_MAX, Locations, decode, encode
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster

B1, B2 = BookieId("b1:1"), BookieId("b2:1")
R1, R2 = Location.parse("/r1"), Location.parse("/east/r2")


async def test_a_location_outlives_whoever_wrote_it() -> None:
    cluster = MemoryCluster()
    one = cluster.connect()
    assert await Locations(one, Paths("/ledgers")).read() == {}
    assert await Locations(one, Paths("/ledgers")).put(B1, R1)
    await one.close()
    other = Locations(cluster.connect(), Paths("/ledgers"))
    assert not await other.put(B1, R1), "it is known already"
    assert await other.put(B2, R2)
    assert await other.read(fresh=True) == {B1: R1, B2: R2}
    assert await other.put(B1, R2)
    assert await other.put(B2, None)
    assert not await other.put(B2, None)
    assert await other.read() == {B1: R2}


async def test_two_who_write_at_once_both_do() -> None:
    cluster = MemoryCluster()
    one, two = (Locations(cluster.connect(), Paths("/ledgers")) for _ in range(2))
    await asyncio.gather(one.put(B1, R1), two.put(B2, R2))
    assert await one.read(fresh=True) == {B1: R1, B2: R2}


async def test_a_change_is_told() -> None:
    cluster = MemoryCluster()
    one, two = (Locations(cluster.connect(), Paths("/ledgers")) for _ in range(2))
    heard = asyncio.Event()
    watch = one.watch(heard.set)
    await two.put(B1, R1)
    await asyncio.wait_for(heard.wait(), 60)
    watch.close()


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"b1":1}', b'{"b1":""}', b'{"b1":"/a b"}', b"[" * 100_000, b" " * (SIZE_MAX + 1)]
)
def test_a_damaged_record_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="locations of the bookies cannot be read"):
        decode(data)


def test_a_record_that_would_not_fit_is_refused() -> None:
    place = Location.parse("/" + "a" * 250)
    with pytest.raises(ConfigError, match="have room"):
        encode({BookieId(f"b{number}:1"): place for number in range(3_500)})
