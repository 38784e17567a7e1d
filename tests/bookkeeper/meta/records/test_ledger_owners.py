"""Claims and hand-overs in the metadata."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.access import Resource
from bookkeeper.errors import ConfigError, MetadataFormatError
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.ledger_owners import HANDED_OVER_MAX, LedgerOwners
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import put
from bookkeeper.meta.stores.memory import MemoryCluster

A, B = Resource.parse("ledgers:a"), Resource.parse("streams:app/x")
SEVEN = LedgerId(70_007)


def owners() -> LedgerOwners:
    return LedgerOwners(MemoryCluster().connect(), Paths())


def test_the_first_claim_counts() -> None:
    async def main() -> None:
        records = owners()
        assert await records.claimed_by(SEVEN) is None
        assert [await records.claim(SEVEN, A), await records.claim(SEVEN, B)] == [A, A]
        assert await records.claimed_by(SEVEN) == A
        await records.forget(SEVEN)
        await records.forget(SEVEN)
        assert await records.claimed_by(SEVEN) is None

    asyncio.run(main())


def test_hand_overs_are_one_record_and_the_last_one_counts() -> None:
    async def main() -> None:
        records = owners()
        assert await records.handed_over() == {}
        await records.hand_over([SEVEN, LedgerId(8)], A)
        await asyncio.gather(records.hand_over([SEVEN], B), records.hand_over([LedgerId(9)], A))
        assert await records.handed_over() == {SEVEN: B, LedgerId(8): A, LedgerId(9): A}
        await records.hand_over([LedgerId(9)], B, gone=[LedgerId(8)])
        assert await records.handed_over() == {SEVEN: B, LedgerId(9): B}
        with pytest.raises(ConfigError, match="grant rights"):
            await records.hand_over([LedgerId(each) for each in range(HANDED_OVER_MAX // 10)], A)

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format":2,"ledgers":{}}', b'{"format":1,"ledgers":{"1":"cluster"}}'])
def test_a_damaged_record_is_refused(data: bytes) -> None:
    async def main() -> None:
        store = MemoryCluster().connect()
        records = LedgerOwners(store, Paths())
        await records.hand_over([SEVEN], A)
        await put(store, records.path, data)
        with pytest.raises(MetadataFormatError, match="handed-over"):
            await records.handed_over()

    asyncio.run(main())
