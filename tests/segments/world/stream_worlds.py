"""A stream in simulated worlds, one seed one world: hosts and bookies on virtual time, and faults by chance.

    python -m tests.segments.world.stream_worlds --seeds 50       healthy worlds: nothing may be found
    python -m tests.segments.world.stream_worlds --bug NAME       the first seed at which a planted bug is found

Three hosts append: each has idempotent producers, which any host carries on, and which are opened anew now and then
while records of them are on their way, and plain records, of which some are stored in pieces. In two worlds of three
they are programs that take turns; in the third they are gateways, which agree by a lease. Two programs read by a
cursor, one at a time. Another one truncates, applies retention and looks for leaked ledgers. The record lists few
segments, so that most are in pages. Faults: the owner is killed, paused and woken, or overtaken while it is well; so
are readers and the cleaner; a bookie crashes; the session of a host ends; requests to the metadata store and its
replies are lost; the store is away; the owner reaches no bookie. In worlds from seed 1000 on two drivers of one query
publish batches besides, whose tasks executors run; they take the stream over, or wait, or let a gateway publish. They
are killed and paused between any two steps, their batches are given up, and each attempt at a batch has other rows.
Afterwards all is well again, and:

* what was acknowledged is in the stream, where it was said to be; what was refused is not;
* nothing is in it twice, each producer's numbers follow each other, and who opens one is told which comes next;
* a reader that tailed it all the time has seen exactly that;
* by the cursor every record was handed out, and none any more after it was done;
* each batch that was committed is there whole, in the order of its tasks, and once; another attempt at it is not;
* places are found by number and by time;
* positions and sequence numbers rise, without a gap in the latter;
* every version of the record was a legal one, and no ledger was deleted that it named;
* a ledger that no version named is empty, and what nothing names can be found and deleted;
* nothing is left of batches that were not published;
* at no moment two gateways were certain that they own the stream.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, NoSuchKeyError, NoSuchLedgerError
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.patches import patches
from segments.chain import stream_chain, stream_pages, stream_tags
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.errors import StreamCorruptError, StreamError, StreamGapError
from segments.namespace import StreamNamespace
from segments.position import EARLIEST, Position
from segments.publish import publisher, staged_writer
from segments.record import StoredRecord, from_ms
from segments.retention import stagings
from segments.retention.deletion import LeakedLedgers
from segments.seek import AtSeqNo, AtTime
from segments.stream import Stream
from tests.segments.world.batch_programs import start_batches
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.judge import shown
from tests.segments.world.stream_bugs import BUGS
from tests.segments.world.stream_cluster import LostReplies, StreamCluster
from tests.segments.world.world_faults import Faults
from tests.segments.world.world_hosts import start_programs
from tests.segments.world.world_state import (
    CLEANER,
    CONFIG,
    CURSOR,
    DRIVERS,
    EXECUTORS,
    HOSTS,
    PRODUCERS,
    READERS,
    STREAM,
    WorldState,
)

BATCHES_FROM: Final = 1000
"""From this seed on drivers publish batches, too."""
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
    done: int = 0
    """Records that readers by the cursor have finished."""
    pages: int = 0
    batches: int = 0
    """Batches that were committed."""
    faults: list[str] = field(default_factory=list)


class StreamWorld:
    """One world."""

    def __init__(self, seed: int) -> None:
        self.report = StreamWorldReport(seed)
        self.witness = ChainWitness()
        self._cluster = StreamCluster(seed, self.witness)
        self._world = WorldState(
            seed, self._cluster, self.witness, gateways=seed % 3 == 2, rng=Random(f"{seed}/streams")
        )
        self._world.with_batches = seed >= BATCHES_FROM
        self._judge = self._world.judge

    def run(self) -> StreamWorldReport:
        """Live through it. What goes wrong is in the report."""
        report = self.report
        try:
            self._cluster.run(self._story, within_s=900)
        except Exception as error:  # also what a planted bug does to the program itself
            self._judge.find(f"the world ended: {type(error).__name__}: {error}")
        world = self._world
        report.problems = self._judge.problems + world.batches.problems + world.cursor.problems + self.witness.problems
        report.batches = sum(each.done is not None for each in world.batches.attempts)
        report.acknowledged, report.duplicates = len(self._judge.acked), self._judge.duplicates
        report.claims, report.segments = self.witness.claims, self.witness.rolls
        report.done, report.pages = len(self._world.cursor.done), self.witness.pages
        return report

    # -- the story ----------------------------------------------------------------------------------------

    async def _story(self, cluster: SimCluster) -> None:
        world = self._world
        cluster.store.interference = LostReplies(Random(world.rng.getrandbits(64)), 0, 0)
        async with cluster.connect() as client:
            stream = await StreamNamespace(client).create(STREAM, config=CONFIG)
            tailing = asyncio.create_task(self._tail(stream))
            watching = asyncio.create_task(self._watch_leases())
            start_programs(world)
            if world.with_batches:
                start_batches(world)
            faults = Faults(world, stream)
            self.report.faults = faults.names
            for _ in range(_FAULTS):
                await asyncio.sleep(0.3 + world.rng.random() * 2)
                await faults.one()
            before = {each: self._judge.first_unacked(each) for each in PRODUCERS}
            done = len(world.cursor.done)
            batches = dict(world.batches.committed)
            await asyncio.sleep(_LAST_S)
            for each in PRODUCERS:
                if self._judge.first_unacked(each) == before[each]:
                    self._judge.find(f"{each} appended nothing for {_LAST_S} s after the last fault")
            if len(world.cursor.done) == done:
                self._judge.find(f"nobody read by the cursor for {_LAST_S} s after the last fault")
            if world.with_batches and world.batches.committed == batches:
                self._judge.find(f"no batch was published for {_LAST_S} s after the last fault")
            world.calm = True
            await self._at_rest()
            found = await self._read(client, stream)
            chain = await stream.chain()
            self.report.records = len(found)
            await self._compare_tail(found, chain.first_position)
            tailing.cancel()
            watching.cancel()
            self._judge.judge(found, PRODUCERS, chain.first_position)
            world.batches.judge(found)
            await self._seek(stream, found)
            world.cursor.judge(await stream.cursor(CURSOR).state(), found)
            await self._look_for_unnamed(client, stream)
            await self._clean_up(client, stream)

    async def _at_rest(self) -> None:
        """Everybody has put the work down, and is gone."""
        await asyncio.sleep(_SETTLE_S)
        others = (*DRIVERS, *EXECUTORS) if self._world.with_batches else ()
        for name in (*HOSTS, *READERS, CLEANER, *others):
            self._cluster.world.node(name).crash()

    async def _watch_leases(self) -> None:
        """At most one gateway is certain that it owns the stream."""
        world = self._world
        while True:
            await asyncio.sleep(0.01)
            certain = [
                name
                for name, ownership in world.ownerships.items()
                if ownership.is_certain and world.cluster.world.node(name).alive
            ]
            if len(certain) > 1:
                self._judge.find(
                    f"{' and '.join(certain)} are certain at the same time that they own the stream", "S11"
                )

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
            async with await client.open_ledger(segment.ledger_id, None) as ledger:
                if ledger.last_add_confirmed < 0:
                    continue
                async for each in ledger.read(0, ledger.last_add_confirmed):
                    entry = decode_entry(each.payload, segment.number, each.entry_id, segment.base)
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
            start = self._world.tailed[-1].position.next if self._world.tailed else EARLIEST
            try:
                async with stream.read(start, follow=True) as reader:
                    async for record in reader:
                        assert isinstance(record, StoredRecord)
                        self._world.tailed.append(record)
            except (StreamGapError, StreamCorruptError) as error:
                self._judge.find(f"the reader met {type(error).__name__}: {error}")
                return
            except (StreamError, BookKeeperError):
                await asyncio.sleep(0.1)

    async def _compare_tail(self, found: list[StoredRecord], start: Position) -> None:
        """The reader has seen exactly what there is, and nothing that is not there."""
        seen: list[StoredRecord] = []
        for _ in range(60):
            seen = [record for record in self._world.tailed if record.position >= start]
            if len(seen) >= len(found):
                break
            await asyncio.sleep(0.5)
        for one, two in zip(seen, found, strict=False):
            if one != two:
                self._judge.find(
                    f"the reader saw {shown(one.value)} at {one.position}, and {two.position} has {shown(two.value)}"
                )
                return
        if len(seen) != len(found):
            self._judge.find(f"the reader saw {len(seen)} records of {len(found)}")

    async def _seek(self, stream: Stream, found: list[StoredRecord]) -> None:
        """Places are found by number and by time, also where tasks have written side by side."""
        for record in self._world.rng.sample(found, min(8, len(found))):
            later = next(each for each in found if each.append_ms >= record.append_ms)
            for seek, wanted in ((AtSeqNo(record.seq_no), record), (AtTime(from_ms(record.append_ms)), later)):
                at = await stream.find(seek)
                met = next((each for each in found if each.position >= at), None)
                if met is not wanted:
                    where = None if met is None else met.position
                    self._judge.find(f"from {seek} on the record at {where} is read first, and not {wanted.position}")

    async def _look_for_unnamed(self, client: BookKeeper, stream: Stream) -> None:
        """A ledger that no version of the record named has no entry, unless a task wrote it for a batch, or who
        publishes was about to tell of producers in it."""
        tags = stream_tags(stream.id)
        async for ledger_id in client.list_ledgers():
            try:
                metadata = (await client.metadata_store.ledgers.read(ledger_id)).value
                if any(metadata.custom.get(key) != value for key, value in tags.items()):
                    continue
                if ledger_id in self.witness.named or "staging" in metadata.custom:
                    continue
                async with await client.open_ledger(ledger_id, None) as ledger:
                    last = ledger.last_add_confirmed
                    if last < 0:
                        continue
                    kinds = [decode_entry(each.payload).kind async for each in ledger.read(0, last)]
                    if not self._world.with_batches or kinds != [EntryKind.SNAPSHOT]:
                        self.witness.see_entries_of(ledger_id)
            except NoSuchLedgerError:
                continue

    async def _clean_up(self, client: BookKeeper, stream: Stream) -> None:
        """A pass of retention and a search for leaks leave only what the record names."""
        await stream.apply_retention()
        if remains := await self._children(stream, "stagings"):
            self._judge.find(f"{sorted(remains)} are left of batches that nobody writes any more", "C9")
        leaks = LeakedLedgers(client)
        await leaks.delete(older_than_s=0)
        chain = await stream.chain()
        there = {int(ledger_id) async for ledger_id in client.list_ledgers()}
        named = set(chain.ledgers)
        for left in there - named:
            self._judge.find(f"ledger {left} is in no stream, and was not deleted", "C9")
        for gone in named - there:
            self._judge.find(f"ledger {gone} is in the record, and does not exist", "C6")
        for key in await self._children(stream, "pages") - {page.key for page in chain.pages}:
            self._judge.find(f"page {key} is in no record, and was not deleted", "C9")

    async def _children(self, stream: Stream, kind: str) -> set[str]:
        path = stream.node.path.removesuffix("chain") + kind
        try:
            return set(await stream.client.metadata_store.store.children(path))
        except NoSuchKeyError:
            return set()


@contextmanager
def _short_times() -> Iterator[None]:
    """A record lists at most eight segments, and a page has three; batches are given up soon: worlds are short."""
    with patches() as patch:
        patch(stream_chain, "FOLD_AT", 8)
        patch(stream_chain, "PAGE_SEGMENTS", 3)
        patch(stream_pages, "FOLD_AT", 8)
        patch(stagings, "LEASE_MS", 6_000)
        patch(staged_writer, "RENEWED_S", 1.0)
        patch(publisher, "TELL_EVERY", 3)
        yield


def run_world(seed: int, bug: str | None = None) -> StreamWorldReport:
    """Live through the world of ``seed``, with a planted bug or without."""
    with ExitStack() as stack:
        stack.enter_context(_short_times())
        if bug is not None:
            stack.enter_context(BUGS[bug].planted())
        return StreamWorld(seed).run()


def find(bug: str) -> StreamWorldReport | None:
    """The first world in which a planted bug shows; None: in none of as many as it may take."""
    for seed in range(BUGS[bug].first, BUGS[bug].first + BUGS[bug].within):
        report = run_world(seed, bug)
        if report.problems:
            return report
    return None


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns how many worlds were bad, or bugs not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.segments.world.stream_worlds", description=__doc__)
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
            f"duplicates told, {report.claims} claims, {report.segments} segments, {report.pages} pages, "
            f"{report.done} done by the cursor, {report.batches} batches; {', '.join(report.faults)}"
        )
        for problem in report.problems[:5]:
            _say(f"    {problem}")
    return bad


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
