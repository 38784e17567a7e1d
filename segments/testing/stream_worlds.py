"""A stream in simulated worlds, one seed one world: hosts and bookies on virtual time, and faults by chance.

    python -m segments.testing.stream_worlds --seeds 50       healthy worlds: nothing may be found
    python -m segments.testing.stream_worlds --bug NAME       the first seed at which a planted bug is found

Three hosts take turns at writing: each has idempotent producers, which any host carries on, and plain records. Faults:
the owner is killed, paused and woken, or overtaken while it is well; a bookie crashes; the session of a host ends;
requests to the metadata store and its replies are lost; the store is away; the owner reaches no bookie. Now and then
half of the stream is truncated, and its ledgers removed. Afterwards all is well again, and:

* what was acknowledged is in the stream, where it was said to be; what was refused is not;
* nothing is in it twice, and each producer's numbers follow each other;
* a reader that tailed it all the time has seen exactly that;
* positions and sequence numbers rise, without a gap in the latter;
* every version of the record was a legal one, and a ledger that none of them named is empty.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from bookkeeper.meta.stores.memory import Fate, MemoryStore
from bookkeeper.seams import Seams
from bookkeeper.testing.cluster import SimCluster, WitnessedStore
from bookkeeper.testing.world import Node
from segments.chain import StreamChain, decode_chain, stream_tags
from segments.config import ProducerPolicy, RollPolicy, StreamConfig
from segments.entries import EntryKind, StoredEntry, decode_entry
from segments.errors import Applied, StreamCorruptError, StreamError, StreamGapError
from segments.namespace import StreamNamespace
from segments.position import EARLIEST, Position
from segments.record import StoredRecord
from segments.stream import Stream
from segments.testing.chain_witness import ChainWitness
from segments.testing.judge import StreamJudge, producer_value
from segments.testing.stream_bugs import BUGS
from segments.write.producer import Producer

STREAM: Final = "flights"
HOSTS: Final = ("h1", "h2", "h3")
PRODUCERS: Final = ("p1", "p2")
CONFIG: Final = StreamConfig(
    roll=RollPolicy(max_records=60, max_age_s=20, min_age_s=0, idle_age_s=5),
    producers=ProducerPolicy(snapshot_every_bytes=4_000),
)
_FAULTS: Final = 8
_LAST_S: Final = 8.0
_SETTLE_S: Final = 40.0


@dataclass(slots=True)
class StreamWorldReport:
    """What came of one world."""

    seed: int
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    records: int = 0
    duplicates: int = 0
    claims: int = 0
    segments: int = 0
    faults: list[str] = field(default_factory=list)


class StreamWorld:
    """One world."""

    def __init__(self, seed: int) -> None:
        self.report = StreamWorldReport(seed)
        self._rng = Random(f"{seed}/streams")
        self.witness = ChainWitness()
        self._cluster = _WitnessedCluster(seed, self.witness)
        self._judge = StreamJudge()
        self._turn = HOSTS[0]
        self._calm = False
        self._busy = asyncio.Event()
        """Set whenever a host sends something."""
        self._sessions: dict[str, MemoryStore] = {}
        self._plain = itertools.count()
        self._tailed: list[StoredRecord] = []
        self._stream: Stream | None = None

    def run(self) -> StreamWorldReport:
        """Live through it. What goes wrong is in the report."""
        report = self.report
        try:
            self._cluster.run(self._story, within_s=900)
        except Exception as error:  # also what a planted bug does to the program itself
            self._judge.find(f"the world ended: {type(error).__name__}: {error}")
        report.problems = self._judge.problems + self.witness.problems
        report.acknowledged, report.duplicates = len(self._judge.acked), self._judge.duplicates
        report.claims, report.segments = self.witness.claims, self.witness.rolls
        return report

    # -- the story ----------------------------------------------------------------------------------------

    async def _story(self, cluster: SimCluster) -> None:
        cluster.store.interference = _LostReplies(Random(self._rng.getrandbits(64)), 0, 0)
        async with cluster.connect() as client:
            namespace = StreamNamespace(client)
            stream = await namespace.create(STREAM, config=CONFIG)
            self._stream = stream
            tailing = asyncio.create_task(self._tail(stream))
            for name in HOSTS:
                cluster.world.node(name).start(self._serve(name))
            for _ in range(_FAULTS):
                await asyncio.sleep(0.3 + self._rng.random() * 2)
                await self._fault()
            before = {each: self._judge.first_unacked(each) for each in PRODUCERS}
            await asyncio.sleep(_LAST_S)
            for each in PRODUCERS:
                if self._judge.first_unacked(each) == before[each]:
                    self._judge.find(f"{each} appended nothing for {_LAST_S} s after the last fault")
            self._calm = True
            await self._at_rest()
            found = await self._read(client, stream)
            chain = await stream.chain()
            self.report.records = len(found)
            await self._compare_tail(found, chain.first_position)
            tailing.cancel()
            self._judge.judge(found, PRODUCERS, chain.first_position)
            await self._look_for_unnamed(client, stream)

    async def _at_rest(self) -> None:
        """Every host has put its work down, and is gone."""
        await asyncio.sleep(_SETTLE_S)
        for name in HOSTS:
            self._cluster.world.node(name).crash()

    def _serve(self, name: str) -> Callable[[Seams], Coroutine[Any, Any, None]]:
        async def serve(seams: Seams) -> None:
            machine = self._cluster.world.node(name)
            rng = Random(f"{self.report.seed}/{name}/{machine.life}")
            client = await self._connect(machine)
            while not self._calm:
                if self._turn != name:
                    await asyncio.sleep(0.02)
                    continue
                try:
                    stream = await StreamNamespace(client).open(STREAM)
                    await self._own(stream, name, rng)
                except (StreamError, BookKeeperError):
                    await asyncio.sleep(0.05 + rng.random() * 0.2)
                except Exception as error:
                    self._judge.find(f"{name} met {type(error).__name__}: {error}")
                    await asyncio.sleep(0.5)

        return serve

    async def _connect(self, machine: Node) -> BookKeeper:
        while True:
            try:
                client = await self._cluster.new_client(node=machine)
            except BookKeeperError:
                await asyncio.sleep(0.1)
                continue
            store = client.metadata_store.store
            assert isinstance(store, MemoryStore)
            self._sessions[machine.name] = store
            return client

    async def _own(self, stream: Stream, name: str, rng: Random) -> None:
        """Write as long as the stream is this host's, whoever's turn it is."""
        producers = [await stream.producer(each) for each in PRODUCERS]
        try:
            nexts = {each.name: self._judge.first_unacked(each.name) for each in producers}
            while not self._calm and not producers[0].writer.closed:
                work: list[Coroutine[Any, Any, bool]] = []
                for producer in producers:
                    count = rng.randint(1, 6)
                    first, nexts[producer.name] = nexts[producer.name], nexts[producer.name] + count
                    work.append(self._produce(producer, first, count, rng.random() < 0.3))
                for _ in range(rng.randrange(4)):
                    work.append(self._append(producers[0], name))
                done = await asyncio.gather(*work)
                if not all(done):
                    return
                await asyncio.sleep(rng.random() * 0.2)
                if rng.random() < 0.02:
                    return
        finally:
            for producer in producers:
                await producer.close()

    async def _produce(self, producer: Producer, first: int, count: int, together: bool) -> bool:
        """Send numbered records; False if the host should begin anew."""
        values = [producer_value(producer.name, first + n) for n in range(count)]
        for value in values:
            self._judge.on_sent(value)
        self._busy.set()
        try:
            if together:
                result = await producer.append_batch(values, seq=first)
                slots = [result.position._replace(slot=result.position.slot + n) for n in range(count)]
                if slots[-1] == result.last:
                    for value, position in zip(values, slots, strict=True):
                        self._judge.on_acked(value, position, duplicate=result.duplicate)
                return True
            futures = [producer.append_nowait(value, seq=first + n) for n, value in enumerate(values)]
            results = await asyncio.gather(*futures, return_exceptions=True)
            for value, answer in zip(values, results, strict=True):
                if not isinstance(answer, BaseException):
                    self._judge.on_acked(value, answer.position, duplicate=answer.duplicate)
            return not any(isinstance(answer, BaseException) for answer in results)
        except StreamError:
            return False

    async def _append(self, producer: Producer, name: str) -> bool:
        """Send a record without a number, once."""
        value = f"plain {next(self._plain)} of {name}".encode()
        self._judge.on_sent(value)
        try:
            result = await producer.writer.append(value)
        except StreamError as error:
            if error.outcome is Applied.NO:
                self._judge.on_rejected(value)
            return False
        self._judge.on_acked(value, result.position)
        return True

    # -- what came of it ----------------------------------------------------------------------------------

    async def _read(self, client: BookKeeper, stream: Stream) -> list[StoredRecord]:
        """All records, straight from the ledgers, after somebody has completed the last segment."""
        for _ in range(30):
            try:
                async with stream.writer(owner="judge"):
                    break
            except StreamError:
                await asyncio.sleep(1)
        chain = await stream.chain()
        found: list[StoredRecord] = []
        for segment in chain.segments:
            records: list[StoredRecord] = []
            pieces: list[StoredEntry] = []
            async with await client.open_ledger(segment.ledger_id) as ledger:
                if ledger.last_add_confirmed < 0:
                    continue
                async for each in ledger.read(0, ledger.last_add_confirmed):
                    entry = decode_entry(each.payload, segment.number, each.entry_id)
                    if entry.kind is EntryKind.PIECE:
                        pieces.append(entry)
                        if entry.piece is not None and entry.piece.is_last:
                            entry, pieces = entry.assembled(pieces), []
                    records += entry.records()
            if not segment.is_open and segment.records != len(records):
                self._judge.find(f"segment {segment.number} has {len(records)} records, and says {segment.records}")
            if not segment.is_open and segment.last != (records[-1].position if records else None):
                self._judge.find(f"segment {segment.number} says that {segment.last} is its last record")
            found += records
        return [record for record in found if record.position >= chain.first_position]

    async def _tail(self, stream: Stream) -> None:
        """Read the stream from its beginning, as it grows."""
        while True:
            start = self._tailed[-1].position.next if self._tailed else EARLIEST
            try:
                async with stream.read(start, follow=True) as reader:
                    async for record in reader:
                        assert isinstance(record, StoredRecord)
                        self._tailed.append(record)
            except (StreamGapError, StreamCorruptError) as error:
                self._judge.find(f"the reader met {type(error).__name__}: {error}")
                return
            except (StreamError, BookKeeperError):
                await asyncio.sleep(0.1)

    async def _compare_tail(self, found: list[StoredRecord], start: Position) -> None:
        """The reader has seen exactly what there is, and nothing that is not there."""
        seen: list[StoredRecord] = []
        for _ in range(60):
            seen = [record for record in self._tailed if record.position >= start]
            if len(seen) >= len(found):
                break
            await asyncio.sleep(0.5)
        for one, two in zip(seen, found, strict=False):
            if one != two:
                self._judge.find(
                    f"the reader saw {one.value!r} at {one.position}, and {two.position} has {two.value!r}"
                )
                return
        if len(seen) != len(found):
            self._judge.find(f"the reader saw {len(seen)} records of {len(found)}")

    async def _look_for_unnamed(self, client: BookKeeper, stream: Stream) -> None:
        """A ledger that no version of the record named has no entry."""
        tags = stream_tags(stream.id)
        async for ledger_id in client.list_ledgers():
            try:
                metadata = (await client.metadata_store.ledgers.read(ledger_id)).value
                if any(metadata.custom.get(key) != value for key, value in tags.items()):
                    continue
                if ledger_id in self.witness.named:
                    continue
                async with await client.open_ledger(ledger_id) as ledger:
                    if ledger.last_add_confirmed >= 0:
                        self.witness.see_entries_of(ledger_id)
            except NoSuchLedgerError:
                continue

    # -- faults -------------------------------------------------------------------------------------------

    async def _fault(self) -> None:
        owner = self._turn
        other = self._rng.choice([name for name in HOSTS if name != owner])
        faults = (
            self._kill,
            self._pause,
            self._pause,
            self._overtake,
            self._crash_bookie,
            self._end_session,
            self._lose_replies,
            self._outage,
            self._cut_off,
            self._truncate,
        )
        chosen = self._rng.choice(faults)
        self.report.faults.append(chosen.__name__.removeprefix("_"))
        self._busy.clear()
        try:
            async with asyncio.timeout(1):
                await self._busy.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(self._rng.random() * 0.006)  # while it is on its way
        await chosen(owner, other)

    async def _kill(self, owner: str, other: str) -> None:
        self._cluster.world.node(owner).crash()
        self._turn = other
        await asyncio.sleep(self._rng.random() * 2)
        self._cluster.world.node(owner).restart()

    async def _pause(self, owner: str, other: str) -> None:
        machine = self._cluster.world.node(owner)
        machine.freeze()
        await asyncio.sleep(self._rng.random() * 0.5)
        self._turn = other
        await asyncio.sleep(self._rng.random() * 3)
        machine.thaw()

    async def _overtake(self, owner: str, other: str) -> None:
        self._turn = other

    async def _crash_bookie(self, owner: str, other: str) -> None:
        name = self._rng.choice(self._cluster.names)
        self._cluster.node(name).crash()
        await asyncio.sleep(self._rng.random() * 2)
        self._cluster.node(name).restart()
        await self._cluster.until_up(name)

    async def _end_session(self, owner: str, other: str) -> None:
        if owner in self._sessions:
            self._cluster.store.expire(self._sessions[owner])

    async def _lose_replies(self, owner: str, other: str) -> None:
        store, before = self._cluster.store, self._cluster.store.interference
        store.interference = _LostReplies(Random(self._rng.getrandbits(64)), 0.05, 0.15)
        if self._rng.random() < 0.5:
            self._turn = other
        await asyncio.sleep(1 + self._rng.random() * 2)
        store.interference = before

    async def _truncate(self, owner: str, other: str) -> None:
        """Half of what a reader has seen is truncated, and its ledgers are removed, while the owner writes."""
        stream = self._stream
        if stream is None or not self._tailed:
            return
        try:
            await stream.truncate(self._tailed[len(self._tailed) // 2].position)
            await stream.apply_retention()
        except (StreamError, BookKeeperError):
            pass  # the next one goes on with it

    async def _cut_off(self, owner: str, other: str) -> None:
        """The owner reaches no bookie, or hears nothing of them; somebody takes over."""
        network = self._cluster.world.network
        deaf = self._rng.random() < 0.5
        for bookie in self._cluster.names:
            if deaf:
                network.cut(bookie, owner, both=False)
            else:
                network.cut(owner, bookie)
        await asyncio.sleep(self._rng.random())
        self._turn = other
        await asyncio.sleep(self._rng.random() * 3)
        for bookie in self._cluster.names:
            network.mend(bookie, owner)
            network.mend(owner, bookie)

    async def _outage(self, owner: str, other: str) -> None:
        self._cluster.store.begin_outage()
        await asyncio.sleep(self._rng.random() * 3)
        self._cluster.store.end_outage()


class _WitnessedStore(WitnessedStore):
    """Shows every version of a stream's record to a witness."""

    def __init__(self, wall_ms: Callable[[], int], witness: ChainWitness) -> None:
        super().__init__(wall_ms)
        self._stream_witness = witness

    def _witness(self, path: str) -> None:
        super()._witness(path)
        if "/segments/streams/" in path and path.endswith("/chain"):
            node = self.read(lambda tree: tree.find(path))
            if node is not None:
                chain: StreamChain = decode_chain(node.value)
                self._stream_witness.see(chain)


class _WitnessedCluster(SimCluster):
    """A cluster with such a store."""

    def __init__(self, seed: int, witness: ChainWitness) -> None:
        super().__init__(seed, bookies=4)
        self.store: _WitnessedStore = _WitnessedStore(self.client.seams.clock.wall_ms, witness)


class _LostReplies:
    """Requests to the metadata store take their time; some of them, and some replies, never come."""

    def __init__(self, rng: Random, requests: float, replies: float) -> None:
        self._rng = rng
        self._requests, self._replies = requests, replies

    def fate(self, session: int, kind: str, path: str) -> Fate:
        rng = self._rng
        return Fate(
            delay_before_s=rng.random() * 0.002,
            request_lost=rng.random() < self._requests,
            reply_lost=rng.random() < self._replies,
            delay_after_s=rng.random() * 0.002,
        )


def run_world(seed: int, bug: str | None = None) -> StreamWorldReport:
    """Live through the world of ``seed``, with a planted bug or without."""
    with ExitStack() as stack:
        if bug is not None:
            stack.enter_context(BUGS[bug].planted())
        return StreamWorld(seed).run()


def find(bug: str) -> StreamWorldReport | None:
    """The first world in which a planted bug shows; None: in none of as many as it may take."""
    for seed in range(BUGS[bug].within):
        report = run_world(seed, bug)
        if report.problems:
            return report
    return None


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns how many worlds were bad, or bugs not found."""
    parser = argparse.ArgumentParser(prog="python -m segments.testing.stream_worlds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--bug", choices=[*BUGS, "all"], help="plant a bug, and look for the seed that finds it")
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # the report says it
    sys.unraisablehook = lambda _: None  # what a crash leaves behind complains when it is collected
    bad = 0
    if given.bug is not None:
        for name in BUGS if given.bug == "all" else [given.bug]:
            found = find(name)
            bad += found is None
            seen = "not found" if found is None else f"seed {found.seed}: {found.problems[0][:120]}"
            _say(f"{name}: {seen}")
        return bad
    for seed in range(given.first, given.first + given.seeds):
        report = run_world(seed)
        gc.collect()
        bad += bool(report.problems)
        _say(
            f"seed {seed}: {report.acknowledged} acknowledged, {report.records} records, {report.duplicates} "
            f"duplicates told, {report.claims} claims, {report.segments} segments; {', '.join(report.faults)}"
        )
        for problem in report.problems[:5]:
            _say(f"    {problem}")
    return bad


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
