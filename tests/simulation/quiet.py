"""The quiet phase: nothing fails any more, so everything must come to its end, and then everything is looked at.

V1  every append ends within its deadline
V2  every ledger can be recovered within a few attempts
V3  where autorecovery runs, every ledger has all its copies again
V5  bookies are registered again, without anybody's help: as writable, unless each of their directories is being emptied
V7  tail readers reach the ends of their ledgers
B12 what was on a ledger directory that failed is whole on the others
K30 where entry logs rot, a scrub finds it within two periods, and what it has cost is copied back
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.compression import Compression
from bookkeeper.encryption import EntryOpener
from bookkeeper.errors import BookKeeperError, DigestMismatchError, NoSuchEntryError, NoSuchLedgerError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.storage.scrub.damage import DamagedPlace
from bookkeeper.storage.scrub.scrubber import AGAIN_S
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.disks.volume_list import VolumeState
from tests.simulation.cluster import SwarmCluster
from tests.simulation.faults.damage import LEDGERS
from tests.simulation.users.actors import Actor, Healer, Recoverer, Tailer
from tests.simulation.watch.history import EventKind

BOOKIES_S: Final = 40.0
"""Longest time for all bookies to serve and be registered: restarts, and other sessions' leftovers."""
PEOPLE_S: Final = 60.0
WHOLE_S: Final = 60.0
"""Longest time for autorecovery to make every ledger whole."""
SCRUB_S: Final = 5.0
"""Seconds beside two periods, and beside second looks, within which a scrub finds what rots."""
REPAIRED_S: Final = 150.0
"""Longest time for a bookie to copy back what rot has taken: two passes over its suspects, and the copies."""
RECOVERY_TRIES: Final = 6


async def quiet_phase(cluster: SwarmCluster, actors: Sequence[Actor]) -> None:
    """Wait for everything to end, read everything, compare. What is wrong goes to the monitor."""
    monitor = cluster.monitor
    if not await until_bookies_serve(cluster):
        return
    people = [actor for actor in actors if not isinstance(actor, Tailer)]
    if late := await _within(PEOPLE_S, lambda: [actor.name for actor in people if not actor.done]):
        monitor.problem("V1", f"{late} have not come to an end {PEOPLE_S:.0f} s after the last fault")
    client = await cluster.new_client(cluster.plan.client)
    auditor = Recoverer(cluster, "client")
    for ledger in cluster.ledgers_there():
        await recover_whole(cluster, client, auditor, ledger)
    unknown = any(map(monitor.may_be_unknown, cluster.ledgers))
    if late := await _within(PEOPLE_S, lambda: [] if unknown else [actor.name for actor in actors if not actor.done]):
        monitor.problem("V7", f"{late} have not reached the ends of closed ledgers after {PEOPLE_S:.0f} s")
    for name, rotten in cluster.monitor.rotten.items():
        if rotten:
            await _until_scrubbed(cluster, name, rotten)
    if cluster.plan.directories:
        await _until_mended(cluster)
    if cluster.plan.healers and not unknown:
        await _until_whole(cluster, client, actors)
    _check_creations(cluster)
    if down := [name for name in cluster.names if not cluster.is_up(name)]:
        for name in down:  # an error of its disk was under way when the faults ended, and it stopped
            cluster.revive(cluster.node(name))
        await until_bookies_serve(cluster)
    for name in list(cluster.names):
        await _check_bookie(cluster, name)
    await client.close()


async def _until_scrubbed(cluster: SwarmCluster, name: str, rotten: set[tuple[str, int]]) -> None:
    """K30: every place that rots was found, and every ledger that it concerns is whole again."""

    def unknown() -> list[tuple[str, int]]:
        engine = cluster.engine_of(name)
        named = {f"{LEDGERS}{log_name(log_id)}" for log_id in engine._checkpointer.manifest.logs}
        damages = engine.scrubber.damages
        return [
            (path, place)
            for path, place in sorted(rotten)
            if path in named and not any(each.path == path and _holds(each, place) for each in damages)
        ]

    limit_s = 2 * cluster.plan.storage["scrub_period_s"] + SCRUB_S + 2 * AGAIN_S * len(rotten)
    if left := await _within(limit_s, unknown):
        cluster.monitor.problem("K30", f"{name} does not know of rot at {left} after {limit_s:.0f} s")
    if late := await _within(REPAIRED_S, lambda: sorted(cluster.servers[name].engine.suspects)):
        cluster.monitor.problem(
            "K30", f"{name} has not repaired ledgers {late} {REPAIRED_S:.0f} s after it knew of rot"
        )
    cluster.monitor.count("places that rot", len(rotten))
    cluster.monitor.count("ledgers repaired after a scrub", _repaired(cluster, name))


async def _until_mended(cluster: SwarmCluster) -> None:
    """B12: what was on disks that failed is whole on the others."""

    def suspected() -> dict[str, list[int]]:
        found = {name: sorted(cluster.servers[name].engine.suspects) for name in cluster.names}
        return {name: ledgers for name, ledgers in found.items() if ledgers}

    if late := await _within(REPAIRED_S, lambda: list(suspected().items())):
        cluster.monitor.problem(
            "B12", f"ledgers that were on lost disks are not whole after {REPAIRED_S:.0f} s: {late}"
        )
    whole = (_repaired(cluster, name) for name in cluster.names)
    cluster.monitor.count("ledgers repaired after the loss of a disk", sum(whole))


def _repaired(cluster: SwarmCluster, name: str) -> int:
    server = cluster.servers[name]
    return server.parts.damaged.whole if server.is_open else 0


def _holds(damage: DamagedPlace, place: int) -> bool:
    """Whether a place that rots lies in what was found: a stretch of records, or the map and the footer behind them."""
    return damage.offset <= place < damage.offset + damage.size or (not damage.size and damage.offset <= place)


async def _until_whole(cluster: SwarmCluster, client: BookKeeper, actors: Sequence[Actor]) -> None:
    """V3: every ledger has all its copies, and no mark is left; nobody asked for it."""
    reasons: dict[int, str] = {}
    for _ in range(int(WHOLE_S)):
        reasons = {}
        for ledger in cluster.ledgers_there():
            if why := await _incomplete_reason(client, LedgerId(ledger)):
                reasons[ledger] = why
        marks = [ledger async for ledger in client.metadata_store.under_replication.ledgers()]
        if not reasons and not marks:
            return
        reasons |= {ledger: "it is marked" for ledger in marks if ledger not in reasons}
        await asyncio.sleep(1.0)
    stuck = {each.ledger: each.reason for actor in actors if isinstance(actor, Healer) for each in actor.report().stuck}
    cluster.monitor.problem("V3", f"not whole {WHOLE_S:.0f} s after the last fault: {reasons}; stuck: {stuck}")


async def _incomplete_reason(client: BookKeeper, ledger: LedgerId) -> str:
    ledgers = client.metadata_store.ledgers
    try:
        record = LedgerView(ledgers, ledger, await ledgers.read(ledger, fresh=True))
        return "; ".join(map(str, await incomplete_copies(RepairContext(services=client.services), record)))
    except NoSuchLedgerError:
        return ""
    except BookKeeperError as error:
        return str(error)


async def until_bookies_serve(cluster: SwarmCluster) -> bool:
    """V5; False if they do not."""
    down = await _within(BOOKIES_S, lambda: [name for name in cluster.names if not _serves(cluster, name)])
    if down:
        cluster.monitor.problem("V5", f"{down} do not serve and register {BOOKIES_S:.0f} s after the last fault")
    return not down


async def _within(limit_s: float, remaining: Callable[[], list[Any]]) -> list[Any]:
    """Wait until nothing remains; what remains when time is up."""
    for _ in range(int(limit_s / 0.1)):
        if not (left := remaining()):
            return []
        await asyncio.sleep(0.1)
    return left


def _serves(cluster: SwarmCluster, name: str) -> bool:
    """Registered as writable; or as read-only, where no directory is left for new ledgers."""

    def registered(path: str) -> bool:
        return cluster.store.read(lambda tree: tree.find(path)) is not None

    if not cluster.is_up(name):
        return False
    return registered(f"/ledgers/available/{name}") or (
        _gets_no_new_ledgers(cluster.servers[name].engine) and registered(f"/ledgers/available/readonly/{name}")
    )


def _gets_no_new_ledgers(storage: Volumes) -> bool:
    """Whether every directory that serves is being emptied: its operator wants it so, and the others are lost. One that
    is full, or whose disk is slow, is another thing: it must come back."""
    return not any(each.state in (VolumeState.NEW, VolumeState.USED) for each in storage.volume_list)


async def recover_whole(cluster: SwarmCluster, client: BookKeeper, auditor: Recoverer, ledger: int) -> None:
    """V2, and a read of the whole ledger."""
    for _ in range(RECOVERY_TRIES):
        if await auditor.recover(client, ledger, whole=True):
            return
        await asyncio.sleep(0.5)
    if cluster.monitor.may_be_unknown(ledger):
        cluster.monitor.count("ledgers with all copies of an entry hurt")
        return
    cluster.monitor.problem("V2", f"ledger {ledger} could not be recovered and read in {RECOVERY_TRIES} attempts")


def _check_creations(cluster: SwarmCluster) -> None:
    """M5: a ledger nobody knows of comes from a creation that failed, or whose client died."""
    counts = cluster.monitor.counts
    strangers = [ledger for ledger in cluster.store.paths if ledger not in cluster.handles]
    if len(strangers) > counts["failed_creates"] + counts["client crashes"]:
        cluster.monitor.problem("M5", f"nobody made ledgers {strangers}")


async def _check_bookie(cluster: SwarmCluster, name: str) -> None:
    """Everything it ever made durable is there, byte by byte (L1, L6), and so are its fences (B3)."""
    monitor, engine = cluster.monitor, cluster.servers[name].engine
    monitor.check_memory(name, engine)
    written: dict[tuple[int, int], bytes] = {}
    for event in cluster.history.events:
        if event.kind in (EventKind.READ, EventKind.ACK):
            written[event.ledger, event.entry] = event.payload
    gone = monitor.gone(name, engine)
    for ledger, entry in sorted(monitor.durable[name] - gone):
        expected = written.get((ledger, entry))
        if expected is None or ledger not in cluster.handles or ledger in monitor.deletions.gone:
            continue  # behind the ledger's end, or nobody's any more
        got: asyncio.Future[bytes | BaseException] = asyncio.get_running_loop().create_future()
        engine.read(LedgerId(ledger), EntryId(entry), got.set_result)
        found = await got
        digest = cluster.handles[ledger]._shell._packets.framing.digest
        sealer = cluster.handles[ledger]._shell._sealer
        try:
            if isinstance(found, BaseException):
                raise found
            payload = digest.unseal(found, LedgerId(ledger), EntryId(entry)).payload
            if sealer is not None:
                (payload,) = EntryOpener(ledger, sealer._aead, Compression.NONE, 0).open(entry, [payload])
            if payload != expected:
                monitor.problem("L6", f"{name} holds other bytes as entry {entry} of ledger {ledger}")
        except (BookKeeperError, DigestMismatchError) as error:
            wrong = isinstance(error, NoSuchEntryError | NoSuchLedgerError) or (
                bool(monitor.rotten[name]) and ledger not in engine.suspects
            )
            if name in monitor.hurt and not (wrong and monitor.belongs(name, ledger, entry)):
                continue
            monitor.problem("L1", f"{name} cannot give entry {entry} of ledger {ledger}: {error!r}")
