"""What a bookie on empty storage finds out and remembers."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.identity.disk_identity import (
    BIRTH,
    READS,
    DiskIdentity,
    read_disk_identity,
    survey,
    write_disk_identity,
)
from bookkeeper.errors import (
    CookieError,
    IdsUsedUpError,
    MetadataError,
    MetadataForbiddenError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.layout import SHORT_MAX
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.testing import World
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import OTHERS, add, named, status


def test_what_was_seen_survives_a_crash_and_damage_is_said() -> None:
    with World(1) as world:
        disk = world.node("b").disk
        disk.make_directories("/data")
        assert read_disk_identity(disk, "/data", BOOKIE) is None
        disk_identity = DiskIdentity(LedgerId(9), frozenset({LedgerId(3), LedgerId(1)}))
        write_disk_identity(disk, "/data", disk_identity, BOOKIE)
        disk.crash(keep=0.0)
        disk.process_died()
        assert read_disk_identity(disk, "/data", BOOKIE) == disk_identity
        with pytest.raises(CookieError, match="belongs to bookie b:3181, not to c:1"):
            read_disk_identity(disk, "/data", BookieId("c:1"))
        whole = disk.read_file(f"/data/{BIRTH}")
        for changed in (whole.replace(b"[1, 3]", b"[1, 4]"), b"[]"):
            replace_file(disk, f"/data/{BIRTH}", changed)
            with pytest.raises(CookieError, match="is damaged"):
                read_disk_identity(disk, "/data", BOOKIE)
        replace_file(disk, f"/data/{BIRTH}", b'{"highest": 9, "suspects": [1, 3]}\n')  # as it was before
        assert read_disk_identity(disk, "/data", BOOKIE) == disk_identity
        disk.open(f"/data/{BIRTH}").pwrite(b"??", 0)
        with pytest.raises(CookieError, match="is damaged"):
            read_disk_identity(disk, "/data", BOOKIE)


def test_a_later_loss_only_ever_covers_more() -> None:
    disk_identity = DiskIdentity(LedgerId(9), frozenset({LedgerId(3)}))
    assert disk_identity.with_highest(LedgerId(4)) == disk_identity
    assert disk_identity.with_highest(LedgerId(12)) == DiskIdentity(LedgerId(12), disk_identity.doubted)


@pytest.mark.rule("W10a", "B9")
def test_a_survey_sees_every_ledger_and_doubts_those_that_name_the_bookie_or_cannot_be_read() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert await survey(metadata, BOOKIE) == DiskIdentity()
        made = [(await metadata.ledgers.create(named(*OTHERS)))[0] for _ in range(READS + 5)]
        first = await survey(metadata, BOOKIE)
        assert first == DiskIdentity(first.highest)
        assert max(made) < first.highest < await metadata.ledgers.next_id()
        mine = [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(3)]
        path = metadata.ledgers.path(made[7])
        await metadata.store.set(path, b"no metadata at all", (await metadata.store.get(path)).version)
        await metadata.ledgers.delete(mine[1])
        await metadata.ledgers.delete((await metadata.ledgers.create(named(BOOKIE)))[0])
        before = await metadata.ledgers.next_id()
        second = await survey(metadata, BOOKIE)
        assert second.doubted == {made[7], mine[0], mine[2]}
        assert before < second.highest < await metadata.ledgers.next_id(), "above the deleted, and all others"
        assert (await survey(metadata, BookieId("nobody:1"))).doubted == {made[7]}

    run(main)


@pytest.mark.rule("W10a", "M6")
def test_who_has_served_before_knows_of_deleted_ledgers_though_none_is_left() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        gone, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(gone, 0)) is Status.OK
        await metadata.ledgers.delete(gone)
        await cluster.wiped()
        assert await status(cluster, add(gone, 1)) is Status.FENCED, "deleted is for ever"
        new, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(new, 0)) is Status.OK

    run(main)


@pytest.mark.rule("W10a", "M6")
@pytest.mark.parametrize(
    "error", [MetadataUnavailableError, SessionExpiredError, MetadataForbiddenError, MetadataError, IdsUsedUpError]
)
def test_a_survey_that_cannot_learn_the_newest_id_fails_unless_there_are_none_left(
    error: type[MetadataError], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(*OTHERS))

        async def next_id() -> LedgerId:
            raise error("planted")

        monkeypatch.setattr(metadata.ledgers, "next_id", next_id)
        if error is IdsUsedUpError:
            assert await survey(metadata, BOOKIE) == DiskIdentity(LedgerId(SHORT_MAX))
            assert ledger < SHORT_MAX
        else:
            with pytest.raises(error, match="planted"):
                await survey(metadata, BOOKIE)

    run(main)
