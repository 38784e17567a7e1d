"""How far a disk is becomes known outside it, and is compared at each start."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import logging
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.identity import progress_publisher
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher, SupersededError
from bookkeeper.errors import BookKeeperError, CookieError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.world import Fault, SimDisk
from bookkeeper.volumes import MappedVolumes
from bookkeeper.volumes.disks.volume_list import ONLY
from bookkeeper.volumes.volume_drain import VolumeDrain
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import KEY, add, named, status


async def known(cluster: Cluster) -> DiskProgress:
    found = await cluster.client.disks.read(BOOKIE)
    assert found is not None
    return found.value


def engine_of(cluster: Cluster) -> Engine:
    assert cluster.server is not None
    (only,) = cluster.server.engine.serving
    return only.engine


async def fill(cluster: Cluster, ledger: LedgerId, first: int, count: int, size: int = 9) -> None:
    for entry_id in range(first, first + count):
        request = add(ledger, entry_id)
        bigger = wire.AddEntry(ledger, EntryId(entry_id), KEY, bytes(request.entry) + bytes(size))
        assert await status(cluster, bigger) is Status.OK


def copy_of(disk: SimDisk) -> Any:
    """A snapshot of everything on it."""
    return copy.deepcopy(disk._directories)


@pytest.mark.rule("K32", "Z12")
def test_what_is_durable_is_known_within_ten_seconds_and_an_idle_bookie_says_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        begun = await known(cluster)
        assert begun.boot == begun.starting == 1 and begun.directory_id
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        await asyncio.sleep(10)
        after = await known(cluster)
        assert after.sequence == engine_of(cluster).durable_position[1] > begun.sequence
        version = await metadata.disks.version(BOOKIE)
        await asyncio.sleep(300)
        assert await metadata.disks.version(BOOKIE) == version

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("K32")
def test_the_greatest_ledger_that_is_known_never_falls() -> None:
    """Also when only the place of a ledger is published."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        assert cluster.server is not None
        publisher, volumes = cluster.server.parts.publisher, cluster.server.engine
        await publisher.opened(volumes, 1_000_000)
        await publisher.stopped(volumes, 3)
        assert (await known(cluster)).highest == 1_000_000

    run(main)


@pytest.mark.rule("K32")
def test_a_new_journal_file_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_publisher, "PUBLISH_S", 10**6)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 2)
        await asyncio.sleep(100)
        before = await known(cluster)
        await fill(cluster, ledger, 2, 40, 4000)
        await asyncio.sleep(progress_publisher.GAP_S + 1)
        after = await known(cluster)
        assert after.file_id > before.file_id and after.sequence > before.sequence

    run(main)


@pytest.mark.rule("K32", "Z12")
def test_appends_go_on_while_the_store_is_away_and_it_is_told_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        cluster.metadata.begin_outage()
        await fill(cluster, ledger, 0, 3)
        await asyncio.sleep(60)
        await fill(cluster, ledger, 3, 3)
        cluster.metadata.end_outage()
        await asyncio.sleep(10)
        assert (await known(cluster)).sequence == engine_of(cluster).durable_position[1]

    with caplog.at_level(logging.INFO, "bookkeeper.bookie.identity.progress_publisher"):
        run(main)
    said = [line.split(" the position")[0] for line in caplog.messages if "the position of its disk" in line]
    assert said == [f"bookie {BOOKIE} cannot publish", f"bookie {BOOKIE} publishes"], "each is said once"


@pytest.mark.rule("K32", "K22")
def test_a_clean_stop_tells_where_the_journal_ended() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        assert cluster.server is not None
        await cluster.node.run(cluster.server.stop())
        assert (await known(cluster)).sequence == engine_of(cluster).durable_position[1]
        cluster.node.crash(power=False)
        await cluster.again()
        assert engine_of(cluster).report.clean and not engine_of(cluster).in_limbo

    run(main)


@pytest.mark.rule("K32")
def test_a_stop_does_not_wait_long_for_a_store_that_is_away() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        server = cluster.server
        assert server is not None
        closed: list[float] = []

        async def last_word() -> None:
            began = asyncio.get_running_loop().time()
            await server.parts.publisher.stopped(server.engine, -1)
            closed.append(asyncio.get_running_loop().time() - began)

        cluster.metadata.begin_outage()
        await cluster.node.run(last_word())
        assert closed[0] <= progress_publisher.LAST_WORD_S
        cluster.metadata.end_outage()

    run(main)


@pytest.mark.rule("K32", "B11")
def test_an_old_life_never_overwrites_what_a_newer_one_has_told_and_ends() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        server = cluster.server
        assert server is not None
        ending = asyncio.ensure_future(server.run_until_failure())
        store = cluster.metadata.connect()
        newer = ProgressPublisher(await Metadata.over(store, cluster.node.seams), BOOKIE, cluster.node.seams.rng)
        await newer.read()
        await newer.claim(9, cluster.node.disk, {ONLY: server.config.storage})
        told = await known(cluster)
        await fill(cluster, ledger, 0, 3)
        assert "another process has started as bookie b:3181 (start 9, this is start 1)" in await ending
        assert await known(cluster) == told
        late = ProgressPublisher(cluster.client, BOOKIE, cluster.node.seams.rng)
        await late.read()
        for boot in (8, 9):
            with pytest.raises(SupersededError):
                await late.claim(boot, cluster.node.disk, {ONLY: server.config.storage})

    run(main)


@pytest.mark.rule("K32", "A11")
def test_what_is_known_of_the_disk_of_a_forgotten_bookie_does_not_come_back() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        found = await metadata.disks.read(BOOKIE)
        assert found is not None
        await metadata.cookies.delete(BOOKIE, (await metadata.cookies.read(BOOKIE)).version)
        await metadata.disks.forget(BOOKIE, found.version)
        await fill(cluster, ledger, 0, 1)
        await asyncio.sleep(30)
        assert await metadata.disks.read(BOOKIE) is None

    run(main)


@pytest.mark.rule("K32", "M8")
def test_a_reply_that_is_lost_neither_ends_the_bookie_nor_loses_the_word() -> None:
    class Losing:
        def fate(self, session: int, kind: str, path: str) -> Fate:
            return Fate(reply_lost="/disks/" in path and kind in ("set", "create") and cluster_rng.random() < 0.7)

    async def main(cluster: Cluster) -> None:
        global cluster_rng
        cluster_rng = cluster.world.rng
        cluster.metadata.interference = Losing()
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        for first in range(0, 20, 2):
            await fill(cluster, ledger, first, 2)
            await asyncio.sleep(7)
        await asyncio.sleep(20)
        assert (await known(cluster)).sequence == engine_of(cluster).durable_position[1]
        assert cluster.server is not None
        assert not cluster.server._failure

    run(main)


cluster_rng: Any = None


# -- starts -----------------------------------------------------------------------------------------------


@pytest.mark.rule("K32", "B9", "B5", "W10a", "R11")
@pytest.mark.parametrize("when", ["before the last start", "a minute ago"])
def test_a_directory_that_was_put_back_from_an_older_copy_denies_nothing(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It looked healthy, so it was a normal start: the bookie denied what it had acknowledged since, and took adds to
    ledgers that it had fenced; with another copy away a recovery closed an acknowledged ledger as empty."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        one, two, three = [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(3)]
        await fill(cluster, one, 0, 2)
        older = copy_of(cluster.node.disk)
        await fill(cluster, one, 2, 2)
        await fill(cluster, two, 0, 1)
        fence = wire.ReadEntry(three, EntryId(0), KEY, fence=True)
        assert await status(cluster, fence) in (Status.NO_ENTRY, Status.NO_LEDGER)
        await asyncio.sleep(60)
        cluster.node.crash(power=False)
        if when == "before the last start":
            await cluster.again()
            cluster.node.crash(power=False)
        cluster.node.disk._directories = older
        await cluster.again()
        await asyncio.sleep(1)
        assert engine_of(cluster).in_limbo
        for entry_id in (0, 1):
            assert await status(cluster, wire.ReadEntry(one, EntryId(entry_id))) is Status.OK
        for ledger, entry_id in ((one, 2), (two, 0), (three, 0)):
            request = wire.ReadEntry(ledger, EntryId(entry_id), KEY, fence=True)
            assert await status(cluster, request) is Status.UNKNOWN_STATE
            assert await status(cluster, add(ledger, 7)) is Status.FENCED
        new, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(new, 0)) is Status.OK, "what is created now cannot have been lost"
        cluster.node.crash(power=False)
        await cluster.again()
        assert engine_of(cluster).in_limbo, "also in its next life"

    run(main)
    said = [line for line in caplog.messages if "may have lost acknowledged data" in line]
    assert said and all("was put back from an older copy" in line and "`bk ledger recover`" in line for line in said)


@pytest.mark.rule("K32")
def test_a_bookie_of_before_there_were_records_starts_normally_and_has_one_then() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        cluster.node.crash(power=False)
        stored = await metadata.disks.version(BOOKIE)
        assert stored is not None
        await metadata.disks.forget(BOOKIE, stored)
        await cluster.again()
        assert not engine_of(cluster).in_limbo
        assert (await known(cluster)).boot == 2
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(2))) is Status.OK

    run(main)


@pytest.mark.rule("K32", "W10a")
@pytest.mark.parametrize("lost", [[], ["boot"]])
def test_what_a_lost_file_said_of_older_ledgers_is_known_outside_it(lost: list[str]) -> None:
    """The greatest id that a fence may be lost of is kept in birth.json alone: without it everything was believed."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        cluster.node.crash(power=False)
        found = await metadata.disks.read(BOOKIE)
        assert found is not None
        await metadata.disks.write(BOOKIE, replace(found.value, highest=1000), found)
        for name in lost:
            cluster.node.disk.unlink(f"/data/{name}")
        await cluster.again()
        assert await status(cluster, add(LedgerId(1000), 0)) is Status.FENCED, "it is deleted, as far as anybody knows"
        assert await status(cluster, add(LedgerId(1001), 0)) is Status.OK
        assert (await known(cluster)).highest == 1000

    run(main)


@pytest.mark.rule("K32", "B11")
def test_whoever_is_started_on_another_bookies_files_is_told_whose_they_are() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        other = DiskProgress(directory_id=0xABC, starting=1, boot=1)
        await metadata.disks.write(BookieId("c:3181"), other, None)
        cluster.node.crash(power=False)
        mark = read_manifest(cluster.node.disk, "/data/ledgers")
        assert mark is not None
        replace(mark, directory_id=other.directory_id).write(cluster.node.disk, "/data/ledgers", None)
        with pytest.raises(
            CookieError, match=r"ledgers/manifest belongs to another .* The file belongs to bookie c:3181"
        ):
            await cluster.again()

    run(main)


@pytest.mark.rule("K32")
def test_the_number_of_a_start_is_above_all_that_anybody_remembers() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        for _ in range(2):
            cluster.node.crash(power=False)
            await cluster.again()
        cluster.node.crash(power=False)
        await metadata.store.set(metadata.own("boot", BOOKIE), b"0", None)
        await cluster.again()
        assert cluster.server is not None and cluster.server.boot == 4

    run(main)


@pytest.mark.rule("K32", "K17", "K21")
@pytest.mark.parametrize("first", [True, False], ids=["the first start", "a later start"])
def test_a_start_that_does_not_come_to_its_end_is_no_older_copy(first: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever it ends: the start's number counts only once the directory has it, in each of its files."""
    ended = 0

    async def main(cluster: Cluster, step: int) -> bool:
        faults = cluster.node.disk.faults
        ledger = LedgerId(5)
        if first:
            faults.append(Fault(operation="*", code=errno.EIO, after=step))
            with contextlib.suppress(OSError, BookKeeperError, TimeoutError):
                await asyncio.wait_for(cluster.up(), 60)
            through = cluster.server is not None and cluster.server._running
            cluster.client = await Metadata.over(cluster.metadata.connect(), cluster.world.node("client").seams)
        else:
            await cluster.up()
            await fill(cluster, ledger, 0, 3)
            await asyncio.sleep(10)
            cluster.node.crash(power=True)
            faults.append(Fault(operation="*", code=errno.EIO, after=step))
            try:
                await asyncio.wait_for(cluster.again(), 60)
                through = True
            except (OSError, BookKeeperError, TimeoutError):
                through = False
        faults.clear()
        cluster.node.crash(power=True)
        await cluster.again()
        assert not engine_of(cluster).in_limbo and not engine_of(cluster).report.quarantined, step
        assert "older copy" not in caplog.text, step
        if not first:
            assert await status(cluster, wire.ReadEntry(ledger, EntryId(2))) is Status.OK
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(7))) in (Status.NO_ENTRY, Status.NO_LEDGER)
        return through

    for step in range(0, 400, 3):
        through: list[bool] = []

        async def one(cluster: Cluster, step: int = step, through: list[bool] = through) -> None:
            through.append(await main(cluster, step))

        run(one, seed=step, garbage_interval_s=10**6)
        ended += not through[0]
        if through[0]:
            break
    assert 10 < ended < 100


@pytest.mark.rule("K32", "B5")
def test_a_directory_that_was_emptied_is_refused_at_every_start() -> None:
    """The first start after it was refused only after it had made new files; the second took those for the bookie's,
    and denied everything."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        cluster.node.crash(power=False)
        disk = cluster.node.disk
        for directory in ("/data/journal", "/data/ledgers"):
            for name in disk.list(directory):
                if name != "VERSION":
                    disk.unlink(f"{directory}/{name}")
        for _ in range(3):
            with pytest.raises(CookieError, match="is empty, but b:3181 has served before"):
                await cluster.again()
            cluster.node.crash(power=False)
            assert not disk.exists("/data/ledgers/manifest")

    run(main)


# -- several ledger directories ---------------------------------------------------------------------------


def volumes_at(cluster: Cluster, *places: str) -> dict[int, StorageConfig]:
    config = config_from(cluster.options).storage
    return {number: replace(config, ledger_dir=at, journal_dir=at) for number, at in enumerate(places, 1)}


@pytest.mark.rule("K32")
def test_each_volume_has_an_id_and_a_later_start_claims_them_as_they_are() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        begun = await known(cluster)
        assert [each.number for each in begun.volumes] == [1, 2]
        assert len(begun.directory_ids) == 2 and 0 not in begun.directory_ids
        for entry_id in range(3):
            ledger, _ = await metadata.ledgers.create(named(BOOKIE))
            assert await status(cluster, add(ledger, entry_id)) is Status.OK
        await asyncio.sleep(10)
        before = await known(cluster)
        assert {each.boot for each in before.volumes} == {1} and (before.sequence, before.file_id) == (0, 0)
        assert cluster.server is not None and isinstance(cluster.server.engine, MappedVolumes)
        assert cluster.server.engine.positions == {
            each.number: (each.file_id, each.sequence) for each in before.volumes
        }
        cluster.node.crash()
        await cluster.again()
        after = await known(cluster)
        assert after.boot == 2 and after.directory_ids == before.directory_ids
        cluster.node.disk.make_directories("/d3")
        publisher = ProgressPublisher(metadata, BOOKIE, cluster.node.seams.rng)
        await publisher.read()
        with pytest.raises(SupersededError, match="another process has started"):
            await publisher.claim(2, cluster.node.disk, volumes_at(cluster, "/d1", "/d2"))
        claimed = await publisher.claim(3, cluster.node.disk, volumes_at(cluster, "/d1", "/d2", "/d3"))
        for each in after.volumes:
            found = claimed[each.number]
            assert (found.directory_id, found.boot, found.sequence, found.file_id) == (
                each.directory_id,
                each.boot,
                each.sequence,
                each.file_id,
            )
        assert claimed[3].boot == 0 and claimed[3].directory_id not in after.directory_ids

    run(main, ledger_dirs=["/d1", "/d2"])


@pytest.mark.rule("K32")
def test_a_bookie_that_grows_keeps_the_progress_of_its_directory() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await fill(cluster, ledger, 0, 3)
        await asyncio.sleep(10)
        before = await known(cluster)
        assert before.volumes == () and before.sequence
        cluster.node.crash()
        publisher = ProgressPublisher(metadata, BOOKIE, cluster.node.seams.rng)
        await publisher.read()
        config = config_from(cluster.options).storage
        configs = {1: config, 2: replace(config, ledger_dir="/d2", journal_dir="/d2")}
        cluster.node.disk.make_directories("/d2")
        claimed = await publisher.claim(2, cluster.node.disk, configs)
        one, two = claimed[1], claimed[2]
        assert (one.directory_id, one.boot) == (before.directory_id, before.boot)
        assert (one.sequence, one.file_id) == (before.sequence, before.file_id)
        assert (two.boot, two.sequence, two.file_id) == (0, 0, 0) and two.directory_id != one.directory_id
        after = await known(cluster)
        assert (after.starting, after.boot, after.highest) == (2, before.boot, before.highest)

    run(main)


# -- where the file of placements ends ----------------------------------------------------------------------


def several(main: Any, **options: Any) -> None:
    run(main, ledger_dirs=["/d1", "/d2", "/d3"], **options)


def door_of(cluster: Cluster) -> MappedVolumes:
    assert cluster.server is not None and isinstance(cluster.server.engine, MappedVolumes)
    return cluster.server.engine


async def some(cluster: Cluster, metadata: Metadata, count: int) -> list[LedgerId]:
    return [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(count)]


async def writes_of(metadata: Metadata) -> int:
    version = await metadata.disks.version(BOOKIE)
    assert version is not None
    return version


@pytest.mark.rule("K35", "K32")
def test_where_the_placements_end_is_published_before_the_first_answer_about_a_ledger() -> None:
    """Cause: the file alone said where it ends. The write that publishes it costs one for each ledger that comes alone,
    one or two for a thousand that come together, and none for a ledger that has its place."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert (await known(cluster)).placements == door_of(cluster).placement_log.end
        ledgers = await some(cluster, metadata, 10)
        for count, ledger in enumerate(ledgers, 1):
            await asyncio.sleep(10)  # what else is to be published has been
            before = await writes_of(metadata)
            assert await status(cluster, add(ledger, 0)) is Status.OK
            published = (await known(cluster)).placements
            assert published is not None and published.count == count
            new_file = count <= 3  # the first one of each directory: that is published, too
            assert await writes_of(metadata) == before + (2 if new_file else 1)
        await asyncio.sleep(10)
        before = await writes_of(metadata)
        for ledger in ledgers:
            assert await status(cluster, add(ledger, 1)) is Status.OK
        assert await writes_of(metadata) == before
        many = await some(cluster, metadata, 1000)
        before = await writes_of(metadata)
        replies = await cluster.ask_all([add(ledger, 0) for ledger in many])
        assert {reply.status for reply in replies} == {Status.OK}
        assert await writes_of(metadata) <= before + 3
        published = (await known(cluster)).placements
        assert published is not None and published.count == 1010

    several(main)


@pytest.mark.rule("K35", "Z12")
def test_while_the_store_is_away_new_ledgers_are_to_be_sent_again_and_others_go_on() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        old, new, newer = await some(cluster, metadata, 3)
        assert await status(cluster, add(old, 0)) is Status.OK
        cluster.metadata.begin_outage()
        assert await status(cluster, add(new, 0)) is Status.IO_ERROR, "it waits for a while, and no longer"
        assert await status(cluster, add(newer, 0)) is Status.TOO_MANY_REQUESTS
        fence = wire.ReadEntry(newer, EntryId(0), KEY, fence=True)
        assert await status(cluster, fence) is Status.IO_ERROR, "nobody would miss the fence"
        for entry_id in range(1, 4):
            assert await status(cluster, add(old, entry_id)) is Status.OK
        cluster.metadata.end_outage()
        await asyncio.sleep(progress_publisher.PUBLISH_S + progress_publisher.GAP_S)
        for ledger in (new, old):
            assert await status(cluster, add(ledger, 4)) is Status.OK
        assert await status(cluster, fence) is Status.NO_ENTRY

    several(main)


def test_what_comes_while_the_bookie_stops_is_published_and_answered() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server, (ledger,) = cluster.server, await some(cluster, metadata, 1)
        assert server is not None
        answers: list[BaseException | None] = []

        async def stop() -> None:
            server.engine.append_entry(ledger, KEY, add(ledger, 0).entry)
            server.engine.when_durable(answers.append)
            await server.stop()

        await cluster.node.run(stop())
        assert answers == [None]
        published = (await known(cluster)).placements
        assert published == door_of(cluster).placement_log.end and published is not None and published.count == 1
        cluster.node.crash()
        await cluster.again()
        assert not door_of(cluster).suspects and door_of(cluster).has(ledger)

    several(main)


@pytest.mark.rule("K35", "K32", "B5")
def test_placements_put_back_from_an_older_copy_are_refused_where_a_disk_is_dead() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        first, *ledgers = await some(cluster, metadata, 7)
        assert await status(cluster, add(first, 0)) is Status.OK
        older = cluster.node.disk.read_file("/data/placements")
        for ledger in ledgers:
            assert await status(cluster, add(ledger, 0)) is Status.OK
        cluster.node.crash()
        put(cluster, "/data/placements", older)
        cluster.node.disk.faults.append(Fault(operation="*", code=errno.EIO, path="/d2"))
        with pytest.raises(BookKeeperError, match=r"placements was cut, or put back from an older copy: .*/d2 is lost"):
            await cluster.again()

    several(main)


@pytest.mark.rule("K35", "K32", "B3", "B5")
def test_a_ledger_that_was_drained_away_is_in_doubt_with_older_placements() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        (ledger,) = await some(cluster, metadata, 1)
        assert await status(cluster, add(ledger, 0)) is Status.OK
        older = cluster.node.disk.read_file("/data/placements")
        door = door_of(cluster)
        source = door.placements.volume_of(ledger)
        assert source is not None
        await cluster.node.run(VolumeDrain(door, source, 0).one_pass())
        assert door.placements.volume_of(ledger) not in (None, source)
        published = (await known(cluster)).placements
        assert published == door.placement_log.end, "the move is published before the ledger is served there"
        assert await status(cluster, add(ledger, 1)) is Status.OK
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(1), KEY, fence=True)) is Status.OK
        cluster.node.crash()
        put(cluster, "/data/placements", older)
        await cluster.again()
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(1))) in (Status.OK, Status.UNKNOWN_STATE)
        assert await status(cluster, add(ledger, 2)) is not Status.OK
        assert door_of(cluster).is_fenced(ledger)

    several(main)


def put(cluster: Cluster, path: str, data: bytes) -> None:
    """What an operator does: another content for a file of a bookie that does not run."""
    disk = cluster.node.disk
    disk.unlink(path)
    file = disk.open(path, create=True)
    file.pwrite(data, 0)
    file.sync()
    file.close()
    disk.sync_directory("/data")


def test_a_bookie_whose_record_another_start_has_taken_fails_when_it_is_to_place_a_ledger() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        (ledger,) = await some(cluster, metadata, 1)
        found = await metadata.disks.read(BOOKIE)
        assert found is not None
        await metadata.disks.write(BOOKIE, replace(found.value, starting=found.value.starting + 1), found)
        assert await status(cluster, add(ledger, 0)) is not Status.OK
        assert cluster.server is not None
        assert "another process has started" in await cluster.server.run_until_failure()

    several(main)
