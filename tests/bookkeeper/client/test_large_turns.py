"""64 MB of appends in one turn of the loop, all that a writer may have pending, through every transport.

A bookie that has enough in hand stops reading in the middle of what was written in one go. A stream that goes on
handing over to somebody who has stopped fills that connection's buffer to its limit and ends it: in ``embedded:`` and
in the simulator every large turn failed, always and with everything behind it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.net.tls import TlsConfig
from bookkeeper.testing.cluster import SimCluster
from examples.certificates import Authority
from tests.bookkeeper.bookie.listeners import bookie, run

MIB = 1024 * 1024
ENTRIES = 64


def payload(i: int) -> bytes:
    return i.to_bytes(4, "big") * (MIB // 4)


async def one_turn(bk: BookKeeper) -> None:
    async with await bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
        pending = [ledger.append_nowait(payload(i)) for i in range(ENTRIES)]
        assert await asyncio.gather(*pending) == list(range(ENTRIES))
        assert ledger.length == ENTRIES * MIB and len(ledger.metadata.fragments) == 1
    async with await bk.open_ledger(ledger.id) as reader:
        found = await asyncio.gather(*[reader.read_entry(i) for i in range(ENTRIES)])
        assert all(entry == payload(i) for i, entry in enumerate(found))


def test_inside_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1") as bk:
            await one_turn(bk)

    run(main)


@pytest.mark.parametrize(("encrypted", "loop"), [(False, "asyncio"), (True, "uvloop")], ids=["tcp", "tls"])
def test_over_sockets(tmp_path: Path, encrypted: bool, loop: str) -> None:
    authority = Authority(tmp_path / "ca")
    made = authority.server()
    tls = {"tls": {"cert": made.cert, "key": made.key}} if encrypted else {}
    config = ClientConfig(tls=TlsConfig(ca=authority.ca) if encrypted else None)

    async def main() -> None:
        async with (
            bookie(tmp_path / "b", **tls),
            BookKeeper.connect(f"sqlite://{tmp_path}/b/metadata.db", config=config) as bk,
        ):
            await one_turn(bk)

    run(main, loop)


def test_in_the_simulator() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await one_turn(bk)

    SimCluster(seed=7).run(story)
