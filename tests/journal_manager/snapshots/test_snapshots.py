"""What all snapshot stores share; the stores themselves are tested with their backends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from journal_manager import (
    JournalCorruptionError,
    JournalUnavailableError,
    SnapshotAheadError,
    SnapshotInfo,
    SnapshotNotFoundError,
    restore_newest,
)
from journal_manager.edits import UNKNOWN_EPOCH, DiscardedEdits, TxId
from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, Cut
from journal_manager.snapshots.snapshots import Chunks, SnapshotStore, adoptable, ensure_durable, pieces


class Shelf(SnapshotStore):
    """Snapshots in lists. A chunk that is an exception is raised."""

    def __init__(self, kept: dict[int, list[bytes | Exception]]) -> None:
        self.kept = kept
        self.closed = False
        self.ended: list[int] = []

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return tuple(SnapshotInfo(at, 0, "") for at in sorted(self.kept))

    async def read(self, at: int) -> AsyncGenerator[bytes, None]:
        for chunk in self.kept[at]:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
        self.ended.append(at)

    async def offer(self, at: int, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True


DAMAGED = JournalCorruptionError("damaged")
AWAY = JournalUnavailableError("away")


async def test_a_store_is_closed_by_its_context() -> None:
    async with Shelf({}) as shelf:
        assert not shelf.closed
    assert shelf.closed


async def restored(shelf: Shelf, fail_on: bytes | None = None) -> tuple[int | None, list[list[bytes]]]:
    given: list[list[bytes]] = []

    async def restore(info: SnapshotInfo, chunks: AsyncIterator[bytes]) -> None:
        given.append([])
        async for chunk in chunks:
            given[-1].append(chunk)
            if chunk == fail_on:
                raise ValueError("the program cannot read this")

    info = await restore_newest(shelf, restore)
    return None if info is None else info.at, given


async def test_the_newest_is_restored() -> None:
    assert await restored(Shelf({})) == (None, [])
    assert await restored(Shelf({5: [b"a"], 10: [b"b", b"c"]})) == (10, [[b"b", b"c"]])


async def test_a_damaged_one_falls_back_to_the_one_before() -> None:
    shelf = Shelf({1: [b"a"], 5: [b"b"], 9: [b"c", DAMAGED], 12: [DAMAGED]})
    assert await restored(shelf) == (5, [[], [b"c"], [b"b"]])
    with pytest.raises(JournalCorruptionError):
        await restored(Shelf({5: [DAMAGED], 9: [b"c", DAMAGED]}))


async def test_one_that_cannot_be_read_now_falls_back_too_and_is_told_if_none_can() -> None:
    """Bookies and disks that rot answer with errors: whether content is damaged or away cannot be told apart."""
    assert await restored(Shelf({1: [b"a"], 5: [b"b", AWAY], 9: [DAMAGED]})) == (1, [[], [b"b"], [b"a"]])
    for older, newer in ((AWAY, DAMAGED), (DAMAGED, AWAY)):
        with pytest.raises(JournalUnavailableError):
            await restored(Shelf({5: [older], 9: [newer]}))

    async def cannot(info: SnapshotInfo, chunks: AsyncIterator[bytes]) -> None:
        raise AWAY

    shelf = Shelf({5: [b"a"], 9: [b"b"]})
    with pytest.raises(JournalUnavailableError):
        await restore_newest(shelf, cannot)
    assert shelf.ended == [9], "what the program itself cannot reach is no reason to go back"


async def test_a_failure_of_the_program_is_raised_only_if_the_snapshot_is_intact() -> None:
    assert await restored(Shelf({5: [b"b"], 9: [b"bad", b"c", DAMAGED]}), b"bad") == (5, [[b"bad"], [b"b"]])
    with pytest.raises(ValueError, match="cannot read this"):
        await restored(Shelf({5: [b"b"], 9: [b"bad", b"c"]}), b"bad")


async def test_a_program_that_stops_early_still_learns_of_damage() -> None:
    async def stop_early(info: SnapshotInfo, chunks: AsyncIterator[bytes]) -> None:
        await anext(chunks)

    shelf = Shelf({5: [b"b", b"c"], 9: [b"b", DAMAGED]})
    found = await restore_newest(shelf, stop_early)
    assert found is not None and found.at == 5
    assert shelf.ended == [5]


async def test_one_that_is_removed_meanwhile_is_passed_over_and_a_newer_one_is_taken() -> None:
    class Moving(Shelf):
        async def read(self, at: int) -> AsyncGenerator[bytes, None]:
            if at == 5:
                self.kept = {9: [b"new"]}
                raise SnapshotNotFoundError("gone")
            async for chunk in super().read(at):
                yield chunk

    assert await restored(Moving({5: [b"old"]})) == (9, [[], [b"new"]])


async def test_content_is_cut_into_pieces_of_one_size() -> None:
    async def asynchronous() -> AsyncIterator[bytes]:
        for chunk in (b"ab", b"", b"cdefghijk", b"l"):
            yield chunk

    for chunks in ([b"ab", b"", b"cdefghijk", b"l"], asynchronous(), [b"abcdefghijkl"]):
        assert [piece async for piece in pieces(chunks, 5)] == [b"abcde", b"fghij", b"kl"]
    assert [piece async for piece in pieces([b"ab", b"cd"], 2)] == [b"ab", b"cd"]
    assert [piece async for piece in pieces([])] == []


@pytest.mark.rule("J9")
def test_a_snapshot_is_kept_at_a_durable_id() -> None:
    ensure_durable(1, 1)
    ensure_durable(3, 5)
    with pytest.raises(SnapshotAheadError, match="up to edit 5"):
        ensure_durable(6, 5)
    with pytest.raises(ValueError, match="ids begin at 1"):
        ensure_durable(0, 5)


def anywhere(at: TxId) -> bool:
    """No upgrade is in progress: a snapshot may be kept at any id."""
    return False


def test_of_what_is_offered_the_newest_durable_one_is_of_use() -> None:
    def infos(*ids: int) -> tuple[SnapshotInfo, ...]:
        return tuple(SnapshotInfo(at, 0, "") for at in ids)

    nothing = NOTHING_DISCARDED
    assert adoptable(infos(5, 3, 9), infos(), 8, nothing, anywhere) == (infos(5), infos(3))
    assert adoptable(infos(5, 3, 9), infos(5), 8, nothing, anywhere) == ((), infos(3, 5))
    assert adoptable(infos(5, 3, 9), infos(4), 9, nothing, anywhere) == (infos(9), infos(3, 5))
    assert adoptable((), infos(4), 9, nothing, anywhere) == ((), ())


def test_what_an_upgrade_may_be_rolled_back_to_stays_the_newest() -> None:
    """An offer at an id from before the upgrade was adopted, in the new version's form."""
    before, since = SnapshotInfo(5, 0, ""), SnapshotInfo(6, 0, "")
    found = adoptable((before, since), (), 6, NOTHING_DISCARDED, lambda at: at <= 5)
    assert found == ((since,), (before,))
    assert adoptable((before,), (), 6, NOTHING_DISCARDED, lambda at: at <= 5) == ((), (before,))


@pytest.mark.rule("J10")
def test_what_was_discarded_is_of_no_use_whatever_its_id_is() -> None:
    """Offers were chosen by their ids alone, and ids are used again."""
    old, new, unknown = SnapshotInfo(9, 0, "", 3), SnapshotInfo(8, 0, "", 5), SnapshotInfo(7, 0, "")
    below = SnapshotInfo(4, 0, "", 3)
    discarded = DiscardedEdits((Cut(5, 4),), "j")
    assert adoptable((old, new, unknown), (), 100, discarded, anywhere) == ((new,), (old, unknown))
    assert adoptable((old, below), (), 100, discarded, anywhere) == ((below,), (old,))
    assert adoptable((old,), (), 1, discarded, anywhere) == ((), (old,)), "also while its id is not durable again"
