"""A listing that ends too early is doubted for a while, and believed then."""

from __future__ import annotations

from typing import cast

import pytest

from journal_manager.edits import DiscardedEdits, SegmentInfo, TxId
from journal_manager.errors import ReplicaFailedError
from journal_manager.journals.backend import JournalReader
from journal_manager.replicas.kept_edits import KeptEdits
from journal_manager.replicas.replica import Replica


class Listing:
    """A journal's reader, as far as its edits are compared."""

    def __init__(self, last: int | None) -> None:
        self.last = last

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return (SegmentInfo(TxId(1), None if self.last is None else TxId(self.last), 1, 1, ""),)

    async def discarded(self) -> DiscardedEdits:
        return DiscardedEdits()


def reading(last: int | None) -> JournalReader:
    return cast(JournalReader, Listing(last))


def rebuilt(durable: int) -> Replica:
    """A replica that knew edits to be durable, and is at the first one again."""
    replica = Replica()
    replica.known.durable(TxId(durable), 1)
    return replica


@pytest.mark.rule("J2")
async def test_j2_edits_that_are_missing_for_too_long_end_the_replica() -> None:
    kept = KeptEdits(rebuilt(5), doubt_s=0.0)
    assert await KeptEdits(rebuilt(5), doubt_s=60.0).check(reading(4)) is not None
    with pytest.raises(ReplicaFailedError, match="ends at edit 4"):
        await kept.check(reading(4))


async def test_a_journal_that_has_them_or_may_have_them_is_followed() -> None:
    kept = KeptEdits(rebuilt(5), doubt_s=60.0)
    for last in (4, 5, None, 9):
        assert (await kept.check(reading(last)) is not None) == (last == 4)


async def test_a_new_gap_is_doubted_from_its_own_beginning() -> None:
    kept = KeptEdits(rebuilt(5), doubt_s=60.0)
    await kept.check(reading(4))
    assert kept._since is not None
    await kept.check(reading(5))
    assert kept._since is None
