"""The figures of journals, in small: what is measured really happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchmarks.journals import GroupedEdits, Tally, grouped_edits, lone_edits, take_over
from bookkeeper import BookKeeper
from journal_manager import Op


@pytest.fixture
async def bk(tmp_path: Path) -> AsyncIterator[BookKeeper]:
    async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=3") as client:
        yield client


async def test_loggers_share_batches_and_the_same_batches_are_appended(bk: BookKeeper) -> None:
    seen = await grouped_edits(bk, "grouped", 0.2)
    assert seen.edits_a_batch > 8
    assert seen.logged_per_s > 0 and seen.raw_per_s > 0


def test_the_ratio_is_of_what_was_logged_over_what_was_appended() -> None:
    assert GroupedEdits(30.0, 40.0, 64.0).ratio == 0.75


async def test_lone_edits_and_appends_take_turns(bk: BookKeeper) -> None:
    seen = await lone_edits(bk, "lone", 20)
    assert seen.sync_us > 0 and seen.append_us > 0


async def test_a_replica_takes_over_with_every_edit_behind(bk: BookKeeper) -> None:
    seen = await take_over(bk, "behind", 2500)
    assert seen.edits == 2500
    assert seen.applied_per_s == 2500 / seen.seconds
    assert seen.edits_read_per_s > 0 and seen.entries_read_per_s > 0
    assert "reading them alone takes" in seen.note


async def test_the_tally_is_a_program_with_snapshots() -> None:
    async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    tally, other = Tally(), Tally()
    tally.apply(Op(0, 1, b"abc"))
    await other.restore(chunks(*tally.snapshot()))
    assert (other.edits, other.bytes) == (1, 3)
    await other.restore(chunks())
    assert (other.edits, other.bytes) == (0, 0)
