"""A whole bookie, from start to stop and through crashes."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.access import Mode, PolicyChange
from bookkeeper.audit import AuditConfig
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.health.health import liveness, readiness
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.errors import (
    BookieError,
    BookKeeperError,
    ClusterMovedError,
    CookieError,
    DirectoryLockedError,
    MetadataError,
    MetadataRolledBackError,
)
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.net.connection import AddRun, connect_bookie
from bookkeeper.storage.base.results import EngineState
from bookkeeper.testing import Fault
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run

KEY = b"k" * 20
L = LedgerId(7)


def entry(entry_id: int, payload: bytes) -> bytes:
    return codec.encode_adds(2, L, entry_id, [payload], -1, 0, KEY, 3)[0][28:]


@pytest.mark.rule("A11")
def test_a_bookie_that_is_forgotten_while_it_starts_does_not_serve() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        cluster.node.crash()
        await asyncio.sleep(0.1)
        cookie = (await metadata.cookies.read(BOOKIE)).version
        count = BookieStart.count

        async def forgotten_now(start: BookieStart) -> None:
            await metadata.bookies.forget(BOOKIE, cookie, await metadata.bookies.times_named(BOOKIE))
            await count(start)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BookieStart, "count", forgotten_now)
            with pytest.raises(CookieError, match=r"the cluster has forgotten b:3181 \(bk bookies forget\)"):
                await cluster.again()
        assert await metadata.bookies.writable() == []
        cluster.node.crash()
        with pytest.raises(CookieError, match="holds data of b:3181, which the cluster has forgotten"):
            await cluster.again()

    run(main)


@pytest.mark.rule("Z7", "Z9")
def test_an_earlier_registration_is_waited_out_as_long_as_its_session_may_last() -> None:
    """A bookie that was killed is listed until its session ends; it must be able to start again."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        other = cluster.metadata.connect()
        cluster.node.crash()
        await asyncio.sleep(0.1)
        path = f"/ledgers/available/{BOOKIE}"
        await other.create(path, b"", ephemeral=True)
        starting = asyncio.ensure_future(cluster.again())
        await asyncio.sleep(30)  # in virtual time
        assert not starting.done()
        await other.close()
        await starting
        assert await cluster.client.bookies.writable() == [BOOKIE]

    run(main, metadata_session_s=30)


@pytest.mark.rule("B1", "B2", "B3", "F1", "F2")
@pytest.mark.parametrize("seed", range(6))
def test_whatever_was_acknowledged_is_there_after_any_number_of_crashes(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        client, rng = cluster.world.node("client"), cluster.world.rng
        acked: dict[int, bytes] = {}
        sent: dict[int, bytes] = {}
        fenced: set[int] = set()
        following = 0

        async def load() -> None:
            nonlocal following
            try:
                connection = await connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5)
                while True:
                    if rng.random() < 0.1:
                        ledger = LedgerId(rng.randrange(100, 105))
                        fence = wire.ReadEntry(ledger, EntryId(-1), KEY, fence=True)
                        reply = await connection.request(fence, 20)
                        if reply.status in (Status.OK, Status.NO_ENTRY):
                            fenced.add(ledger)
                    batch = [rng.randbytes(rng.randrange(0, 900)) for _ in range(rng.randrange(1, 12))]
                    entries = {following + i: entry(following + i, payload) for i, payload in enumerate(batch)}
                    following += len(batch)
                    sent.update(entries)
                    asked = [wire.AddEntry(L, EntryId(e), KEY, data) for e, data in entries.items()]
                    replies = await asyncio.gather(*[connection.request(request, 20) for request in asked])
                    for request, reply in zip(asked, replies, strict=True):
                        if reply.status is Status.OK:
                            acked[request.entry_id] = request.entry
            except BookieError:
                return

        for _ in range(6):
            loading = client.run(load())
            await asyncio.sleep(0.02 + 0.1 * rng.random())
            cluster.node.crash()
            await loading
            await asyncio.sleep(rng.random())
            await cluster.again()
            assert cluster.server is not None
            assert cluster.server.engine.report.limbo_reason is None
            reads = [wire.ReadEntry(L, EntryId(entry_id)) for entry_id in sorted(sent)]
            for entry_id, reply in zip(sorted(sent), await cluster.ask_all(reads), strict=True):
                if entry_id in acked:
                    assert reply.entry == acked[entry_id], f"acknowledged entry {entry_id}: {reply.status}"
                elif reply.status is Status.OK:
                    assert reply.entry == sent[entry_id], f"entry {entry_id} was never sent like this"
            for ledger in sorted(fenced):
                late = wire.AddEntry(LedgerId(ledger), EntryId(0), KEY, ledger.to_bytes(8, "big") + bytes(24))
                assert (await cluster.ask(late)).status is Status.FENCED
        assert len(acked) > 20

    run(main, seed=seed)


@pytest.mark.rule("V5")
def test_it_is_registered_while_it_serves_and_comes_back_after_its_session_is_lost() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert await metadata.bookies.writable() == [BOOKIE]
        assert await metadata.bookies.address(BOOKIE) == Address("b", 3181)
        cluster.metadata.expire(cluster.stores[-1])
        await asyncio.sleep(30)
        assert await metadata.bookies.writable() == [BOOKIE]
        assert cluster.server is not None
        await cluster.node.run(cluster.server.stop())
        assert await metadata.bookies.writable() == []
        with pytest.raises(BookKeeperError):
            await cluster.ask(wire.GetBookieInfo())

    run(main)


@pytest.mark.rule("V8", "B10", "K26")
def test_it_turns_read_only_on_a_full_disk_and_writable_again() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        disk = cluster.node.disk
        disk.capacity = disk.used() + 30_000
        statuses = []
        for entry_id in range(80):
            reply = await cluster.ask(wire.AddEntry(L, EntryId(entry_id), KEY, entry(entry_id, bytes(2000))))
            statuses.append(reply.status)
        assert statuses[0] is Status.OK
        assert statuses[-1] is Status.READ_ONLY
        await asyncio.sleep(10)
        assert await metadata.bookies.writable() == []
        assert await metadata.bookies.read_only() == [BOOKIE]
        assert (await cluster.ask(wire.ReadEntry(L, EntryId(0)))).status is Status.OK
        assert (await cluster.ask(wire.ReadEntry(L, EntryId(0), KEY, fence=True))).status is Status.OK
        disk.capacity = 1 << 40
        await asyncio.sleep(20)
        assert await metadata.bookies.writable() == [BOOKIE]

    run(main, storage={"journal_file_bytes": 64 * 1024, "entry_log_bytes": 64 * 1024, "reserve_bytes": 16384})


@pytest.mark.rule("K26")
def test_reads_go_on_when_a_burst_has_met_a_full_disk() -> None:
    """What waits for the journal then waits for space, and whoever brought it must not be left unread for as long."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        disk = cluster.node.disk
        assert (await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))).status is Status.OK
        disk.capacity = disk.used() + 5000
        client = cluster.world.node("client")
        connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
        adds = [wire.AddEntry(L, EntryId(entry_id), KEY, entry(entry_id, bytes(4000))) for entry_id in range(1, 40)]
        answers = await asyncio.gather(*[client.run(connection.request(add, 10)) for add in adds])
        assert answers[-1].status is Status.READ_ONLY
        taken = [add.entry_id for add, answer in zip(adds, answers, strict=True) if answer.status is Status.OK]
        assert len(taken) < len(adds) // 2, "one group: the journal has its space"
        for entry_id in (EntryId(0), *taken):
            answer = await client.run(connection.request(wire.ReadEntry(L, entry_id), 10))
            assert answer.status is Status.OK
        disk.capacity = 1 << 40
        await asyncio.sleep(20)
        again = wire.AddEntry(L, EntryId(40), KEY, entry(40, b"x"))
        assert (await client.run(connection.request(again, 10))).status is Status.OK
        connection.close()

    sizes = {"journal_file_bytes": 64 * 1024, "entry_log_bytes": 64 * 1024, "reserve_bytes": 0}
    run(main, storage={**sizes, "inflight_bytes": 16384, "group_bytes": 8192})


@pytest.mark.rule("K23")
def test_a_failed_sync_ends_the_bookie() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert cluster.server is not None
        cluster.node.disk.faults.append(Fault(operation="pwrite", code=errno.EIO, path="journal"))
        reply = await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))
        assert reply.status is Status.IO_ERROR
        await asyncio.wait_for(cluster.server.run_until_failure(), 5)
        assert cluster.server.health()["status"] == "failed"
        await cluster.node.run(cluster.server.stop())
        assert await metadata.bookies.writable() == []

    run(main)


@pytest.mark.rule("K22")
def test_a_file_that_cannot_be_closed_holds_up_no_stop() -> None:
    """Whoever waited for the disk's end waited for ever."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        assert cluster.server is not None
        reply = await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))
        assert reply.status is Status.OK
        cluster.node.disk.faults += [
            Fault(operation="close", code=errno.EIO, path=f".{ending}") for ending in ("journal", "log")
        ]
        await asyncio.wait_for(cluster.node.run(cluster.server.stop()), 60)
        assert cluster.server.engine.state is EngineState.CLOSED
        cluster.node.disk.faults.clear()
        cluster.node.crash()
        await cluster.again()
        assert cluster.server.engine.report.clean

    run(main)


@pytest.mark.rule("M10")
@pytest.mark.parametrize("alarm", [MetadataRolledBackError("older"), ClusterMovedError("elsewhere")])
def test_it_takes_no_adds_by_metadata_that_were_put_back(alarm: MetadataError) -> None:
    """Who was there before has ended. A client that begins anew gets ids that were given out before, and wrote entries
    of its ledger beside those that are here, into a ledger that comes back with the newest metadata. Where the cluster
    has only moved, clients write through the other store."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()

        def add(entry_id: int, *, recovery: bool = False) -> wire.AddEntry:
            return wire.AddEntry(L, EntryId(entry_id), KEY, entry(entry_id, b"x"), recovery=recovery)

        assert cluster.server is not None
        assert (await cluster.ask(add(0))).status is Status.OK
        cluster.server._metadata.present.alarm = alarm
        await asyncio.sleep(1)
        put_back = isinstance(alarm, MetadataRolledBackError)
        assert (await cluster.ask(add(1))).status is (Status.READ_ONLY if put_back else Status.OK)
        assert cluster.server.condition().read_only is put_back
        assert (await cluster.ask(wire.ReadEntry(L, EntryId(0), fence=True, master_key=KEY))).status is Status.OK
        assert (await cluster.ask(add(2, recovery=True))).status is Status.OK

    run(main)


@pytest.mark.rule("B11")
def test_two_processes_never_share_a_directory() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        second = BookieServer(config_from({**cluster.options, "listen": "b:9999"}), cluster.node.seams, metadata)
        with pytest.raises(DirectoryLockedError):
            await second.start()
        assert await metadata.bookies.writable() == [BOOKIE]

    run(main)


def test_stopping_waits_for_what_is_in_progress_and_leaves_a_clean_disk() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        client = cluster.world.node("client")
        connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
        got: list[AddRun] = []
        stream = connection.open_stream(1, L, got.extend, lambda error: None)
        stream.send(codec.encode_adds(3, L, 0, [b"p" * 100] * 100, -1, 0, KEY, 3, txn_base=stream.txn_base)[0])
        poll = wire.ReadEntry(L, EntryId(-1), previous_lac=5, timeout_ms=50_000, piggyback=True)
        polled: list[Any] = []
        connection.request_nowait(poll, 60, polled.append)
        await asyncio.sleep(0.02)
        assert cluster.server is not None
        await cluster.node.run(cluster.server.stop())
        await asyncio.sleep(1)
        assert got == [(0, 100, Status.OK)]
        assert len(polled) == 1
        cluster.node.crash(power=True)
        await cluster.again()
        assert cluster.server.engine.report.clean
        assert (await cluster.ask(wire.ReadEntry(L, EntryId(99)))).status is Status.OK

    run(main)


@pytest.mark.rule("W11", "B1", "K9")
@pytest.mark.parametrize("seed", range(8))
def test_a_crash_may_take_deferred_adds_never_plain_or_forced_ones_and_leaves_no_doubt(seed: int) -> None:
    def add(entry_id: int, *, deferred: bool) -> wire.AddEntry:
        frames, _ = codec.encode_adds(2, L, entry_id, [b"p" * 50], -1, 0, KEY, 3)
        return wire.AddEntry(L, EntryId(entry_id), KEY, frames[28:], deferred_sync=deferred)

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        await cluster.ask_all([add(entry_id, deferred=True) for entry_id in range(3)])
        assert (await cluster.ask(wire.ForceLedger(L))).status is Status.OK
        kept = {0, 1, 2}
        client = cluster.world.node("client")
        connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
        acked: list[tuple[int, bool, Any]] = []
        enough = asyncio.Event()

        def send(entry_id: int, *, deferred: bool) -> None:
            def answered(answer: Any) -> None:
                acked.append((entry_id, deferred, answer))
                if len(acked) == 3 + 2 * seed:
                    enough.set()

            connection.request_nowait(add(entry_id, deferred=deferred), 10, answered)

        for entry_id in range(3, 30):
            send(entry_id, deferred=bool((entry_id + seed) % 3))
        await enough.wait()
        kept |= {entry_id for entry_id, deferred, answer in acked if not deferred and answer.status is Status.OK}
        cluster.node.crash(power=True)
        await cluster.again()
        assert cluster.server is not None
        report = cluster.server.engine.report
        assert report.limbo_reason is None and not report.quarantined
        replies = await cluster.ask_all([wire.ReadEntry(L, EntryId(entry_id)) for entry_id in range(30)])
        here = {entry_id for entry_id, reply in enumerate(replies) if reply.status is Status.OK}
        assert kept <= here
        assert all(reply.status in (Status.OK, Status.NO_ENTRY) for reply in replies)

    run(main, seed=seed)


@pytest.mark.rule("K22")
def test_background_work_that_has_failed_does_not_keep_the_disk_from_its_clean_stop() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None

        async def failing() -> None:
            raise ValueError("nobody foresaw this")

        server._tasks.append(asyncio.create_task(failing()))
        await asyncio.sleep(1)
        await cluster.node.run(server.stop())
        assert await metadata.bookies.writable() == []
        assert server.engine.state is EngineState.CLOSED
        assert "dirty" not in cluster.node.disk.list("/data/ledgers")

    run(main)


@pytest.mark.rule("Z1", "Z12")
def test_with_the_store_away_it_is_live_but_not_ready_and_stops_in_time() -> None:
    """Each step of a stop that asked the store waited for as long as the store may take: 40 s in all."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server, loop = cluster.server, asyncio.get_running_loop()
        assert server is not None
        assert readiness(server.condition())["status"] == "ok"
        assert (await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))).status is Status.OK
        cluster.metadata.begin_outage()
        await asyncio.sleep(12)
        assert liveness(server.condition())["status"] == "ok"
        assert readiness(server.condition())["status"] == "unregistered"
        shown = server.health()
        assert (shown["status"], shown["state"], shown["disk"]) == ("ok", "unregistered", "writable")
        assert 11 < shown["seconds_without_metadata"] < 13
        begun = loop.time()
        await cluster.node.run(server.stop())
        assert loop.time() - begun < 6
        assert server.engine.state is EngineState.CLOSED

    run(main)


@pytest.mark.rule("Z1", "V5")
def test_when_the_store_is_back_it_is_ready_again() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        cluster.metadata.begin_outage()
        await asyncio.sleep(3)
        assert readiness(server.condition())["status"] == "unregistered"
        cluster.metadata.end_outage()
        await asyncio.sleep(20)
        assert readiness(server.condition())["status"] == "ok"
        assert server.health()["sentences"] == []

    run(main)


@pytest.mark.rule("B11", "K23")
def test_the_first_reason_to_end_is_the_one_that_is_told() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        server.parts.reports.on_superseded("another process is this bookie")
        server.parts.reports.on_superseded("and again")
        assert await server.run_until_failure() == "another process is this bookie"

    run(main)


@pytest.mark.rule("K16")
@pytest.mark.parametrize("directories", [(), ("/d1", "/d2")])
def test_why_a_checkpoint_failed_is_on_the_status_page_until_one_succeeds(directories: tuple[str, ...]) -> None:
    """Those that begin by themselves told nobody."""

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        cluster.node.disk.faults.append(Fault(operation="rename", code=errno.EMFILE, path="manifest"))
        await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"p")))
        told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        server.engine.checkpoint(told.set_result)
        assert isinstance(await told, OSError)
        said = next(line for line in server.health()["sentences"] if "checkpoint" in line)
        assert "failed" in said and "it is tried again" in said
        failing = server.metrics.gauge("failing_checkpoints")
        server.refresh_metrics()
        assert failing.value == max(1, len(directories))
        cluster.node.disk.faults.clear()
        await asyncio.sleep(server.config.space_check_s * 3)
        assert not [line for line in server.health()["sentences"] if "checkpoint" in line]
        server.refresh_metrics()
        assert failing.value == 0

    run(main, ledger_dirs=directories)


# -- the access policy ----------------------------------------------------------------------------------------


@pytest.mark.rule("X12a", "X16")
def test_a_bookie_notes_changes_of_the_policy_and_names_javas_bookies_at_its_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            access, store, paths = bk.metadata_store.access, bk.metadata_store.store, bk.metadata_store.paths
            note = PolicyChange(7, "eve on host", "mode observe")
            await access.change(lambda policy: replace(policy, mode=Mode.OBSERVE), note)
            await asyncio.sleep(5)
            lines = [record.getMessage() for record in caplog.records if record.name == "bookkeeper.audit.lines"]
            assert len([line for line in lines if '"mode observe"' in line and "eve on host" in line]) == 3, lines
            assert "bookies of Apache BookKeeper enforce nothing" not in caplog.text
            await store.create(paths.available_bookie(BookieId("java:3181")), ephemeral=True)
            cluster.node("b1").crash()
            await asyncio.sleep(20)
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            assert "enforce nothing: what is on them is open to every client that they admit: java:3181" in caplog.text

    with caplog.at_level("INFO"):
        SimCluster(audit=AuditConfig(to="log")).run(story)


async def stopped(cluster: Cluster) -> None:
    """The bookie ends as it should, and its process is gone."""
    assert cluster.server is not None
    await cluster.server.stop()
    cluster.node.crash()


@pytest.mark.rule("V8", "B10")
def test_one_that_was_full_starts_writable_when_there_is_room_and_its_space_is_told_meanwhile() -> None:
    """What apache/bookkeeper#4640 and #1884 tell: it stayed read-only after a restart, and told 0 for its disk."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        disk = cluster.node.disk
        disk.capacity = disk.used() + 30_000
        for entry_id in range(80):
            reply = await cluster.ask(wire.AddEntry(L, EntryId(entry_id), KEY, entry(entry_id, bytes(2000))))
        assert reply.status is Status.READ_ONLY
        await stopped(cluster)
        await cluster.again()
        await asyncio.sleep(10)
        assert await metadata.bookies.read_only() == [BOOKIE]
        info = await cluster.ask(wire.GetBookieInfo())
        assert info.total > info.free >= 0 and info.total == disk.capacity
        await stopped(cluster)
        disk.capacity = 1 << 40
        await cluster.again()
        await asyncio.sleep(20)
        assert await metadata.bookies.writable() == [BOOKIE]

    run(main, storage={"journal_file_bytes": 64 * 1024, "entry_log_bytes": 64 * 1024, "reserve_bytes": 160 * 1024})


def refused(cluster: Cluster) -> bool:
    """Whether the bookie tells people why it takes nothing."""
    assert cluster.server is not None
    return any("takes no new entries: " in said for said in cluster.server.condition().sentences())


@pytest.mark.rule("K26", "B10")
@pytest.mark.parametrize("reserve", [0, 160 * 1024])
def test_one_that_was_killed_on_a_full_disk_comes_back_on_it_and_says_why_it_takes_nothing(reserve: int) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        disk = cluster.node.disk
        disk.capacity = disk.used() + 300_000
        taken = 0
        for entry_id in range(200):
            reply = await cluster.ask(wire.AddEntry(L, EntryId(entry_id), KEY, entry(entry_id, bytes(2000))))
            if reply.status is not Status.OK:
                break
            taken += 1
        assert 20 < taken < 200
        cluster.node.crash()
        disk.capacity = disk.used()
        await cluster.again()
        disk.capacity = disk.used()
        await asyncio.sleep(10)
        reads = [await cluster.ask(wire.ReadEntry(L, EntryId(entry_id))) for entry_id in range(taken)]
        assert all(read.status is Status.OK for read in reads)
        if reserve:
            assert await metadata.bookies.read_only() == [BOOKIE]
            assert refused(cluster)
        disk.capacity = 1 << 40
        await asyncio.sleep(20)
        assert await metadata.bookies.writable() == [BOOKIE]
        assert not refused(cluster)

    sizes = {"journal_file_bytes": 64 * 1024, "entry_log_bytes": 64 * 1024, "checkpoint_bytes": 128 * 1024}
    run(main, storage={**sizes, "inflight_bytes": 16384, "group_bytes": 8192, "reserve_bytes": reserve})


@pytest.mark.rule("K21")
def test_one_with_an_id_of_its_own_comes_back_at_another_address() -> None:
    """What apache/bookkeeper#3306 tells: in Kubernetes each restart brought another address and another cookie."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert (await cluster.ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))).status is Status.OK
        cluster.node.crash()
        cluster.options["listen"] = "b:4181"
        await cluster.again()
        assert await metadata.bookies.writable() == [BookieId("mine")]
        connection = await cluster.world.node("client").run(
            connect_bookie(cluster.world.node("client").seams.net, Address("b", 4181), timeout_s=5)
        )
        reply = await cluster.world.node("client").run(connection.request(wire.ReadEntry(L, EntryId(0)), 10))
        assert reply.status is Status.OK
        connection.close()

    run(main, bookie_id="mine")
