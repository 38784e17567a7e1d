"""What our writer sends, beside what Apache's client sent in the same session: the same but for transaction ids."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.ledger import HEADER
from bookkeeper.wire.bookkeeper_pb2 import ADD_ENTRY, FORCE_LEDGER, WRITE_LAC, Request
from tests.bookkeeper.client.scripted import ScriptedCluster

VECTORS = Path(__file__).parents[2] / "vectors"
SESSIONS: dict[str, Any] = {
    session["name"]: session for session in json.loads((VECTORS / "wire_v3.json").read_text())["sessions"]
}
WRITING = (ADD_ENTRY, FORCE_LEDGER, WRITE_LAC)


def shapes(requests: list[bytes]) -> Counter[bytes]:
    """Frames of a writer, without their transaction ids; how often each was sent."""
    found: Counter[bytes] = Counter()
    for body in requests:
        request = Request.FromString(body)
        assert request.SerializeToString() == body, "fields in another order"
        if request.header.operation in WRITING:
            request.header.txnId = 0
            found[request.SerializeToString()] += 1
    return found


def javas(name: str) -> Counter[bytes]:
    frames = [frame for frame in SESSIONS[name]["frames"] if frame["dir"] == "request" and "hex" in frame]
    return shapes([bytes.fromhex(frame["hex"])[4:] for frame in frames])


def ours(cluster: ScriptedCluster) -> Counter[bytes]:
    bodies = []
    for bookie in cluster.bookies:
        data, at = bytes(bookie.received), 0
        while at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            bodies.append(data[at + 4 : end])
            at = end
    return shapes(bodies)


@pytest.mark.rule("W11")
def test_deferred_adds_and_forces_are_those_of_apaches_client() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(
                write_quorum=2, ack_quorum=2, password=b"testpwd", ledger_id=4, deferred_sync=True
            )
            await ledger.append(b"d0")
            await ledger.append(b"d1")
            assert ledger.last_add_confirmed == SESSIONS["deferred-sync-and-force"]["notes"]["lac_before_force"]
            assert await ledger.force() == SESSIONS["deferred-sync-and-force"]["notes"]["lac_after_force"]
            sent = ours(cluster)
            await ledger.close()
        assert sent == javas("deferred-sync-and-force")

    ScriptedCluster().run(story)


@pytest.mark.rule("R12")
def test_advanced_adds_are_those_of_apaches_client_but_lengths_count_in_the_order_of_ids() -> None:
    """Apache's client counts a length when an entry is given to it, so that the last entry's is not the ledger's."""

    def without_lengths(frames: Counter[bytes]) -> tuple[Counter[bytes], dict[int, int]]:
        found, lengths = Counter[bytes](), dict[int, int]()
        for frame, count in frames.items():
            request = Request.FromString(frame)
            body = bytearray(request.addRequest.body)
            ledger_id, entry_id, lac, lengths[request.addRequest.entryId] = HEADER.unpack_from(body)
            HEADER.pack_into(body, 0, ledger_id, entry_id, lac, 0)  # DUMMY: no digest to make anew
            request.addRequest.body = bytes(body)
            found[request.SerializeToString()] += count
        return found, lengths

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger(
                digest="dummy", unsafe_without_digest=True, ledger_id=1234567890123, advanced=True
            ) as ledger:
                for entry_id, payload in ((2, b"two"), (1, b"one"), (0, b"zero")):
                    future = ledger.append_at_nowait(entry_id, payload)
                await future
                sent, lengths = without_lengths(ours(cluster))
            assert lengths == {0: 4, 1: 7, 2: 10}
            assert (sent, {2: 3, 1: 6, 0: 10}) == without_lengths(javas("write-adv-out-of-order"))
            assert ledger.metadata.length == 10

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_plain_adds_and_the_explicit_last_add_confirmed_are_those_of_apaches_client() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"testpwd", digest="hmac", ledger_id=5)
            await ledger.append(b"x0")
            await ledger.append(b"x1")
            await asyncio.sleep(1)
            assert ours(cluster) == javas("explicit-lac")
            await ledger.close()

    ScriptedCluster().run(story)
