"""Replicas of a program: one answers, the others follow, and whatever happens nothing is lost or applied twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.errors import Outcome
from journal_manager import (
    Discard,
    EditLog,
    EditLogConfig,
    JournalClosedError,
    JournalCorruptionError,
    JournalDiskError,
    JournalError,
    JournalFailedError,
    JournalFencedError,
    JournalUnavailableError,
    OpTooLargeError,
    RequestId,
    RetentionPolicy,
    SegmentInfo,
    SnapshotInfo,
    TxId,
    capability,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.backends import memory
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import Batch
from journal_manager.errors import NotActiveError, ReplicaFailedError, RequestForgottenError
from journal_manager.replicas.replica import ReplicaRole
from journal_manager.replicas.replicated_program import ReplicatedProgram, replicated
from journal_manager.snapshots.snapshots import Chunks
from tests.journal_manager.replicas import Ballot, Candidate, Ledger, RefusedError, config_of, replica_of, words
from tests.spark_wal.webhdfs.virtual import in_virtual_time


class Pair:
    """Two replicas on one journal; ``a`` is elected first."""

    def __init__(self, **config: Any) -> None:
        self.hub, self.ballot = MemoryHub(), Ballot("a")
        self.candidates = [Candidate(self.ballot, name) for name in ("a", "b")]
        self.a, self.b = [replica_of(self.hub, candidate, config_of(**config)) for candidate in self.candidates]

    async def __aenter__(self) -> Pair:
        await self.a.start()
        await self.b.start()
        await self.a.wait_until_active()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.a.close()
        await self.b.close()

    async def submit(self, *texts: bytes) -> None:
        for text in texts:
            await self.a.submit(text)


class Gate:
    """Appends of a journal in memory wait until it is opened, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.error: JournalError | None = None
        real = memory.MemorySegmentWriter.append

        async def append(segment: memory.MemorySegmentWriter, batch: Batch) -> None:
            await self.open.wait()
            if self.error is not None:
                raise self.error
            await real(segment, batch)

        def begin(segment: memory.MemorySegmentWriter, batch: Batch) -> Awaitable[None]:
            return append(segment, batch)

        monkeypatch.setattr(memory.MemorySegmentWriter, "append", begin)


def role(replica: ReplicatedProgram) -> ReplicaRole:
    return replica.role


# -- answering -----------------------------------------------------------------------------------------


@in_virtual_time
async def test_what_is_submitted_is_answered_and_reaches_the_standby() -> None:
    async with Pair() as pair:
        answers = [await pair.a.submit(b"one"), await pair.a.submit(b"two", opcode=7)]
        assert [(answer.txid, answer.result) for answer in answers] == [(1, b"1"), (2, b"2")]
        assert await pair.a.read(lambda: words(pair.a)) == [b"one", b"two"]
        await asyncio.sleep(1)
        assert words(pair.b) == [b"one", b"two"] and pair.b.applied == 2


@in_virtual_time
async def test_only_the_active_replica_answers_and_the_others_name_it() -> None:
    async with Pair() as pair:
        for call in (pair.b.submit(b"x"), pair.b.read(lambda: 1), pair.b.checkpoint()):
            with pytest.raises(NotActiveError, match=r"standby.*; a is") as caught:
                await call
            assert caught.value.active == "a" and caught.value.retryable and caught.value.outcome is Outcome.REJECTED
        assert words(pair.b) == []


@in_virtual_time
async def test_a_refused_edit_is_not_logged() -> None:
    async with Pair() as pair:
        await pair.submit(b"x")
        with pytest.raises(RefusedError):
            await pair.a.submit(b"x", request=RequestId(b"c", 1))
        with pytest.raises(OpTooLargeError):
            await pair.a.submit(bytes(60 << 20))
        assert (await pair.a.submit(b"y", request=RequestId(b"c", 1))).txid == 2
        assert words(pair.a) == [b"x", b"y"]


@in_virtual_time
async def test_a_repeated_request_is_applied_once_also_by_the_next_active_replica() -> None:
    async with Pair() as pair:
        request = RequestId(b"client", 1)
        first = await pair.a.submit(b"x", request=request)
        assert await pair.a.submit(b"x", request=request) == first
        pair.ballot.elect("b")
        await pair.b.wait_until_active()
        assert await pair.b.submit(b"x", request=request) == first
        assert words(pair.b) == [b"x"] and pair.b.applied == 1


@in_virtual_time
async def test_a_request_that_is_too_old_to_tell_is_refused() -> None:
    async with Pair(max_answers=1) as pair:
        await pair.a.submit(b"x", request=RequestId(b"client", 1))
        await pair.a.submit(b"y", request=RequestId(b"client", 2))
        with pytest.raises(RequestForgottenError):
            await pair.a.submit(b"x", request=RequestId(b"client", 1))


@in_virtual_time
async def test_a_request_of_a_client_that_is_forgotten_is_refused_if_it_says_when_it_began() -> None:
    """Also by a replica that knows the requests from the journal alone."""
    async with Pair(max_answers=1, max_clients=1) as pair:
        since = pair.a.status().durable
        first = RequestId(b"0", 1)
        await pair.a.submit(b"x", request=first, since=since)
        for number in range(1, 4):
            await pair.a.submit(b"%d" % number, request=RequestId(b"%d" % number, 1), since=pair.a.status().durable)
        pair.ballot.elect("b")
        await pair.b.wait_until_active()
        with pytest.raises(RequestForgottenError, match="may have been carried out"):
            await pair.b.submit(b"x", request=first, since=since)
        assert (await pair.b.submit(b"z", request=RequestId(b"new", 1), since=pair.b.status().durable)).txid == 5
        with pytest.raises(RequestForgottenError, match="discarded since"):
            await pair.b.submit(b"z", request=RequestId(b"odd", 1), since=TxId(9))
        assert words(pair.b) == [b"x", b"1", b"2", b"3", b"z"]


@in_virtual_time
async def test_a_repetition_is_not_answered_before_the_edit_is_durable() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            gate.open.clear()
            waits = [asyncio.create_task(pair.a.submit(b"x", request=RequestId(b"c", 1))) for _ in range(2)]
            await asyncio.sleep(1)
            assert not any(wait.done() for wait in waits)
            gate.open.set()
            assert [(await wait).txid for wait in waits] == [1, 1]


@in_virtual_time
async def test_more_than_may_wait_is_taken_when_there_is_room() -> None:
    async with Pair(edit_log=EditLogConfig(max_pending_bytes=100)) as pair:
        answers = await asyncio.gather(*(pair.a.submit(b"%40d" % n) for n in range(20)))
        assert sorted(answer.txid for answer in answers) == list(range(1, 21))


# -- reading -------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_read_waits_until_what_it_saw_is_durable() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            gate.open.clear()
            writing = asyncio.create_task(pair.a.submit(b"x"))
            await asyncio.sleep(1)
            reading = asyncio.create_task(pair.a.read(lambda: list(words(pair.a))))
            await asyncio.sleep(1)
            assert not reading.done()
            gate.open.set()
            assert await reading == [b"x"] and (await writing).txid == 1


@in_virtual_time
async def test_a_read_of_what_was_lost_is_not_answered() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            gate.open.clear()
            writing = asyncio.create_task(pair.a.submit(b"x"))
            await asyncio.sleep(1)
            reading = asyncio.create_task(pair.a.read(lambda: list(words(pair.a))))
            await asyncio.sleep(1)
            gate.error = JournalUnavailableError("gone")
            gate.open.set()
            for task in (writing, reading):
                with pytest.raises(JournalFailedError):
                    await task


@in_virtual_time
async def test_a_read_waits_for_the_election_to_be_certain_and_not_for_ever() -> None:
    async with Pair(doubt_s=10.0) as pair:
        candidate = pair.candidates[0]
        candidate.doubts = True
        reading = asyncio.create_task(pair.a.read(lambda: 7))
        await asyncio.sleep(9)
        assert not reading.done()
        candidate.doubts = False
        assert await reading == 7
        candidate.doubts = True
        with pytest.raises(NotActiveError, match="cannot be certain"):
            await pair.a.read(lambda: 7)
        assert (await pair.a.submit(b"x")).txid == 1, "the journal decides about edits"


# -- fencing and taking over ---------------------------------------------------------------------------


@pytest.mark.rule("C5", "C8")
@in_virtual_time
async def test_two_that_believe_to_be_active_are_told_apart_by_the_journal() -> None:
    async with Pair() as pair:
        await pair.submit(b"x")
        pair.candidates[0].paused = True
        pair.ballot.elect("b")
        await pair.b.wait_until_active()
        assert (role(pair.a), role(pair.b)) == (ReplicaRole.ACTIVE, ReplicaRole.ACTIVE)
        await pair.b.submit(b"y")
        with pytest.raises(JournalFencedError):
            await pair.a.submit(b"lost")
        pair.candidates[0].paused = False
        await asyncio.sleep(5)
        assert (role(pair.a), role(pair.b)) == (ReplicaRole.STANDBY, ReplicaRole.ACTIVE)
        assert words(pair.a) == words(pair.b) == [b"x", b"y"], "the edit that was lost is not in the state any more"


@pytest.mark.rule("C8")
@in_virtual_time
async def test_a_successor_has_everything_that_was_answered_before_it_answers() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with Pair() as pair:
            monkeypatch.setattr(memory.MemoryReader, "changed", lambda reader, timeout: asyncio.sleep(3600))
            await asyncio.sleep(10)
            for n in range(3000):
                await pair.a.submit(b"%d" % n)
            assert pair.b.applied < 3000
            pair.ballot.elect("b")
            await pair.b.wait_until_active()
            assert await pair.b.read(lambda: len(words(pair.b))) == 3000
            assert role(pair.a) is not ReplicaRole.ACTIVE


@in_virtual_time
async def test_after_a_failure_of_its_journal_it_replays_and_is_active_again() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            await pair.submit(b"x")
            gate.error = JournalUnavailableError("no ack quorum")
            request = RequestId(b"client", 1)
            with pytest.raises(JournalFailedError):
                await pair.a.submit(b"y", request=request)
            gate.error = None
            await pair.b.close()
            await pair.a.wait_until_active()
            assert words(pair.a) == [b"x"] and pair.a.status().epoch == 2
            assert (await pair.a.submit(b"y", request=request)).txid == 2, "the request was not carried out"


@in_virtual_time
async def test_a_journal_that_cannot_be_claimed_is_tried_again() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        real, failures = memory.MemoryBackend.open_writer, 3

        async def open_writer(*args: Any, **options: Any) -> Any:
            nonlocal failures
            if failures:
                failures -= 1
                raise JournalUnavailableError("away")
            return await real(*args, **options)

        monkeypatch.setattr(memory.MemoryBackend, "open_writer", open_writer)
        async with replica_of(MemoryHub(), Candidate(Ballot(), "a")) as replica:
            await replica.wait_until_active()
            await replica.submit(b"x")
            assert failures == 0 and replica.status().problem is None


@pytest.mark.rule("C4", "C8")
@in_virtual_time
async def test_there_and_back_again_with_what_a_dead_one_left_open_finished() -> None:
    async with Pair() as pair:
        for turn, (active, name) in enumerate([(pair.a, "a"), (pair.b, "b"), (pair.a, "a"), (pair.b, "b")]):
            pair.ballot.elect(name)
            await active.wait_until_active()
            async with await open_reader("mem:x", hub=pair.hub) as reader:
                assert not any(segment.in_progress for segment in await reader.segments())
            for n in range(3):
                await active.submit(b"%d.%d" % (turn, n))
            async with await open_reader("mem:x", hub=pair.hub) as reader:
                assert (await reader.segments())[-1].first == 3 * turn + 1
        await asyncio.sleep(5)
        expected = [b"%d.%d" % (turn, n) for turn in range(4) for n in range(3)]
        assert words(pair.a) == words(pair.b) == expected and pair.b.status().epoch == 4


class Reads:
    """Reading a journal in memory fails at one edit, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: JournalError, at: TxId, times: float) -> None:
        self.left = times
        real = memory.MemoryReader.read

        async def read(reader: memory.MemoryReader, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
            async for batch in real(reader, segment, start):
                if batch.last >= at and self.left > 0:
                    self.left -= 1
                    raise error
                yield batch

        monkeypatch.setattr(memory.MemoryReader, "read", read)


@pytest.mark.rule("C4")
@in_virtual_time
async def test_a_read_that_fails_half_way_goes_on_after_what_was_applied() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with Pair() as pair:
            reads = Reads(monkeypatch, JournalUnavailableError("away"), at=3, times=4)
            await pair.submit(b"1", b"2", b"3", b"4", b"5")
            await asyncio.sleep(1)
            assert words(pair.b) == [b"1", b"2"] and "away" in (pair.b.status().problem or "")
            await asyncio.sleep(20)
            assert reads.left == 0 and words(pair.b) == words(pair.a)
            assert role(pair.b) is ReplicaRole.STANDBY and pair.b.status().problem is None


@pytest.mark.rule("C8")
@in_virtual_time
async def test_one_that_cannot_read_all_edits_does_not_become_active() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        hub, ballot = MemoryHub(), Ballot("a")
        async with replica_of(hub, Candidate(ballot, "a")) as first:
            await first.wait_until_active()
            for n in range(5):
                await first.submit(b"%d" % n)
        reads = Reads(monkeypatch, JournalCorruptionError("damaged"), at=4, times=float("inf"))
        async with replica_of(hub, Candidate(ballot, "b")) as second:
            for _ in range(100):
                assert role(second) is not ReplicaRole.ACTIVE
                await asyncio.sleep(0.1)
            assert "damaged" in (second.status().problem or "") and len(words(second)) == 3
            reads.left = 0
            await second.wait_until_active()
            assert len(words(second)) == 5


@in_virtual_time
async def test_one_that_cannot_claim_the_journal_leaves_it_to_the_others() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        real = memory.MemoryBackend.open_writer

        async def open_writer(*args: Any, **options: Any) -> Any:
            if options["owner"] == "a":
                raise JournalUnavailableError("away")
            return await real(*args, **options)

        monkeypatch.setattr(memory.MemoryBackend, "open_writer", open_writer)
        hub, ballot = MemoryHub(), Ballot("a")
        async with replica_of(hub, Candidate(ballot, "a")) as cut_off, replica_of(hub, Candidate(ballot, "b")) as other:
            async with asyncio.timeout(10):
                await other.wait_until_active()
            await asyncio.sleep(1)
            assert role(cut_off) is ReplicaRole.STANDBY


@in_virtual_time
async def test_it_gives_the_election_up_when_the_race_for_it_was_lost_while_it_caught_up() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with Pair() as pair:
            await pair.submit(b"x")

            async def too_late(candidate: Candidate) -> None:
                monkeypatch.undo()
                pair.ballot.elect("a")
                await real(candidate)

            real = Candidate.wait_until_held
            monkeypatch.setattr(Candidate, "wait_until_held", too_late)
            pair.ballot.elect("b")
            await asyncio.sleep(5)
            await pair.a.wait_until_active()
            assert role(pair.b) is ReplicaRole.STANDBY and pair.a.status().epoch == 3


@in_virtual_time
async def test_the_first_replica_makes_the_journal_and_a_standby_waits_for_it() -> None:
    hub, ballot = MemoryHub(), Ballot("a")
    async with replica_of(hub, Candidate(ballot, "b")) as standby:
        await asyncio.sleep(5)
        assert role(standby) is ReplicaRole.STANDBY and hub.places == {} and standby.status().problem is None
        async with replica_of(hub, Candidate(ballot, "a")) as active:
            await active.wait_until_active()
            await active.submit(b"x")
            await asyncio.sleep(5)
            assert words(standby) == [b"x"]


# -- a program that breaks its contract ----------------------------------------------------------------


@in_virtual_time
async def test_a_program_that_raises_on_replay_takes_no_more_part_and_the_others_go_on() -> None:
    async with Pair() as pair:
        machine = pair.b.machine
        assert isinstance(machine, Ledger)
        machine.breaks_at = b"y"
        await pair.submit(b"x", b"y", b"z")
        await asyncio.sleep(5)
        assert role(pair.b) is ReplicaRole.FAILED
        for call in (pair.b.submit(b"x"), pair.b.wait_until_active()):
            with pytest.raises(ReplicaFailedError, match="edit 2 was replayed"):
                await call
        assert "edit 2" in (pair.b.status().problem or "")
        await pair.submit(b"on")
        assert words(pair.a)[-1] == b"on"


@in_virtual_time
async def test_a_program_that_cannot_be_restored_after_a_failure_takes_no_more_part() -> None:
    """It may hold edits that are not in the journal: nothing tries again for ever, and it is not asked any more."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            await pair.submit(b"x")

            tries, restores = 0, Ledger.restore

            async def restore(machine: Ledger, chunks: AsyncIterator[bytes]) -> None:
                nonlocal tries
                tries += 1
                if tries == 1:
                    raise RuntimeError("the program has no way back")
                await restores(machine, chunks)

            monkeypatch.setattr(Ledger, "restore", restore)
            gate.error = JournalUnavailableError("no ack quorum")
            with pytest.raises(JournalFailedError):
                await pair.a.submit(b"y")
            await asyncio.sleep(5)
            assert role(pair.a) is ReplicaRole.FAILED
            assert "no way back" in (pair.a.status().problem or "")
            with pytest.raises(ReplicaFailedError):
                await pair.a.submit(b"z")


@in_virtual_time
async def test_a_program_that_fails_while_it_catches_up_leaves_the_election_to_the_others() -> None:
    hub, ballot = MemoryHub(), Ballot("a")
    async with replica_of(hub, Candidate(ballot, "a")) as first:
        await first.wait_until_active()
        await first.submit(b"x")
    broken = Ledger()
    broken.breaks_at = b"x"
    async with replica_of(hub, Candidate(ballot, "b"), machine=broken) as second:
        await asyncio.sleep(5)
        assert role(second) is ReplicaRole.FAILED
        async with replica_of(hub, Candidate(ballot, "c")) as third:
            await third.wait_until_active()


# -- snapshots -----------------------------------------------------------------------------------------


async def snapshots(pair: Pair) -> list[TxId]:
    async with await open_snapshots("mem:x", hub=pair.hub) as store:
        return [info.at for info in await store.list()]


@in_virtual_time
async def test_a_standby_takes_snapshots_by_number_and_the_active_replica_adopts_them() -> None:
    async with Pair(edits=10) as pair:
        await pair.submit(*(b"%d" % n for n in range(9)))
        await asyncio.sleep(20)
        assert await snapshots(pair) == []
        await pair.submit(b"ten")
        await asyncio.sleep(20)
        assert await snapshots(pair) == [10]
        assert pair.a.status().newest_snapshot == pair.b.status().newest_snapshot == 10
        await asyncio.sleep(10_000)
        assert await snapshots(pair) == [10], "without a new edit there is no new snapshot"


@in_virtual_time
async def test_a_standby_takes_snapshots_by_time() -> None:
    async with Pair(seconds=100.0) as pair:
        await pair.submit(b"x")
        await asyncio.sleep(90)
        assert await snapshots(pair) == []
        await asyncio.sleep(20)
        assert await snapshots(pair) == [1]


@in_virtual_time
async def test_the_active_replica_takes_them_if_no_standby_does() -> None:
    async with Pair(edits=10) as pair:
        await pair.b.close()
        await pair.submit(*(b"%d" % n for n in range(19)))
        await asyncio.sleep(20)
        assert await snapshots(pair) == []
        await pair.submit(b"twenty")
        await asyncio.sleep(20)
        assert await snapshots(pair) == [20]
        for at in (40, 60):
            await pair.submit(*(b"%d" % n for n in range(at, at + 20)))
            await asyncio.sleep(20)
        assert await snapshots(pair) == [40, 60], "and what is not needed any more is removed"


@in_virtual_time
async def test_one_can_be_asked_for_and_shows_durable_edits_only() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            assert await pair.a.checkpoint() is None
            gate.open.clear()
            writing = asyncio.create_task(pair.a.submit(b"x"))
            await asyncio.sleep(1)
            taking = asyncio.create_task(pair.a.checkpoint())
            await asyncio.sleep(1)
            assert not taking.done() and await snapshots(pair) == []
            gate.open.set()
            info = await taking
            assert info is not None and info.at == (await writing).txid == 1
            assert await pair.a.checkpoint() is None


@in_virtual_time
async def test_a_failover_does_not_wait_for_a_snapshot() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        cancelled = asyncio.Event()

        async def endless(store: memory.MemorySnapshots, at: TxId, chunks: Chunks, *, epoch: int) -> SnapshotInfo:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            raise AssertionError

        monkeypatch.setattr(memory.MemorySnapshots, "offer", endless)
        async with Pair(edits=2) as pair:
            await pair.submit(b"x", b"y")
            await asyncio.sleep(5)
            await pair.submit(b"z")
            await asyncio.sleep(5)
            assert pair.b.applied == 2, "nothing is applied while a snapshot is taken"
            with pytest.raises(NotActiveError):
                await pair.b.submit(b"a standby answers that it is one")
            pair.ballot.elect("b")
            async with asyncio.timeout(1):
                await pair.b.wait_until_active()
            assert cancelled.is_set() and words(pair.b) == [b"x", b"y", b"z"]


@in_virtual_time
async def test_a_snapshot_that_cannot_be_kept_stops_nobody() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:

        async def fails(*args: Any, **options: Any) -> SnapshotInfo:
            raise JournalUnavailableError("away")

        monkeypatch.setattr(memory.MemorySnapshots, "offer", fails)
        monkeypatch.setattr(memory.MemoryWriter, "save_snapshot", fails)
        async with Pair(edits=2) as pair:
            await pair.submit(b"1", b"2", b"3", b"4")
            await asyncio.sleep(30)
            assert await snapshots(pair) == []
            monkeypatch.undo()
            await pair.submit(b"5")
            await asyncio.sleep(30)
            assert await snapshots(pair) == [5] and words(pair.b)[-1] == b"5"


@in_virtual_time
async def test_a_purge_that_fails_fails_no_snapshot() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:

        async def fails(writer: memory.MemoryWriter, below: TxId) -> Any:
            raise JournalDiskError("unlink")

        monkeypatch.setattr(memory.MemoryWriter, "purge", fails)
        async with Pair(retention=RetentionPolicy(snapshots=1)) as pair:
            for text in (b"x", b"y"):
                await pair.submit(text)
                info = await pair.a.checkpoint()
                assert info is not None
            assert await snapshots(pair) == [2] and role(pair.a) is ReplicaRole.ACTIVE
            await pair.submit(b"z")


@pytest.mark.rule("C6")
@in_virtual_time
async def test_retention_keeps_the_newest_snapshots_and_the_edits_after_the_oldest_of_them() -> None:
    async with Pair(edits=10, retention=RetentionPolicy(snapshots=2)) as pair:
        for at in range(0, 50, 10):
            await pair.submit(*(b"%d" % n for n in range(at, at + 10)))
            await asyncio.sleep(20)
        assert await snapshots(pair) == [40, 50]
        async with await open_reader("mem:x", hub=pair.hub) as reader:
            assert [segment.first for segment in await reader.segments()] == [41]


@in_virtual_time
async def test_a_replica_that_comes_later_than_the_edits_begins_with_a_snapshot() -> None:
    async with Pair(edits=10, retention=RetentionPolicy(snapshots=1)) as pair:
        await pair.submit(*(b"%d" % n for n in range(20)))
        await asyncio.sleep(30)
        await pair.submit(b"more")
        async with replica_of(pair.hub, Candidate(pair.ballot, "c")) as late:
            await asyncio.sleep(5)
            assert words(late) == words(pair.a) and len(words(late)) == 21
            pair.ballot.elect("c")
            await late.wait_until_active()
            with pytest.raises(RefusedError):
                await late.submit(b"3")


@in_virtual_time
async def test_a_standby_whose_edits_were_removed_before_it_read_them_restores_a_snapshot() -> None:
    async with Pair() as pair:
        await pair.submit(b"1", b"2")
        await asyncio.sleep(5)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(memory.MemoryReader, "changed", lambda reader, timeout: asyncio.sleep(100))
            await asyncio.sleep(5)
            await pair.submit(*(b"more %d" % n for n in range(5)))
            await pair.a.checkpoint()
            await pair.submit(b"last")
            await pair.a.checkpoint()
            await pair.a.submit(b"very last")
        await asyncio.sleep(300)
        assert words(pair.b) == words(pair.a)


@in_virtual_time
async def test_a_standby_that_lacks_removed_edits_when_it_is_elected_restores_a_snapshot() -> None:
    async with Pair() as pair:
        await pair.submit(b"1", b"2")
        await asyncio.sleep(5)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(memory.MemoryReader, "changed", lambda reader, timeout: asyncio.sleep(10_000))
            await asyncio.sleep(5)
            await pair.submit(*(b"more %d" % n for n in range(5)))
            await pair.a.checkpoint()
            await pair.submit(b"last")
            await pair.a.checkpoint()
            await pair.submit(b"very last")
            assert pair.b.applied == 2
            pair.ballot.elect("b")
            await pair.b.wait_until_active()
            assert words(pair.b) == [b"1", b"2", *(b"more %d" % n for n in range(5)), b"last", b"very last"]


# -- edits that were discarded ------------------------------------------------------------------------


class DiscardedUnder(Pair):
    """Both have applied the edits 1 to 4 and stand by; nobody is elected. The edits from 3 on are discarded."""

    def __init__(self, *others: bytes, **config: Any) -> None:
        super().__init__(edit_log=EditLogConfig(segment_edits=2), **config)
        self.others = others
        """What is logged then, from 3 on."""

    async def __aenter__(self) -> DiscardedUnder:
        await super().__aenter__()
        await self.submit(b"1", b"2", b"3", b"4")
        await asyncio.sleep(5)
        self.ballot.elect("nobody")
        await asyncio.sleep(5)
        assert words(self.a) == words(self.b) == [b"1", b"2", b"3", b"4"]
        return self

    async def discard(self) -> None:
        async with await open_writer("mem:x", hub=self.hub) as writer:
            await capability(writer, Discard).discard_from(3)  # type: ignore[type-abstract]
        async with await EditLog.open("mem:x", hub=self.hub) as log:
            for word in self.others:
                await log.log(word)


@in_virtual_time
@pytest.mark.rule("J10", "C4")
@pytest.mark.parametrize("others", [(), (b"other 3",), (b"other 3", b"other 4", b"other 5")])
async def test_a_standby_that_stood_still_while_edits_were_discarded_becomes_active_with_the_journals(
    others: tuple[bytes, ...],
) -> None:
    """It compared ids alone: what it had applied up to 4 was continued with edit 5, a state that no journal ever had;
    with fewer new edits an invariant was broken and it took no more part."""
    async with DiscardedUnder(*others) as pair:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(memory.MemoryReader, "changed", lambda reader, timeout: asyncio.sleep(10_000))
            await asyncio.sleep(5)
            await pair.discard()
            assert words(pair.b) == [b"1", b"2", b"3", b"4"], "it has noticed nothing"
            pair.ballot.elect("b")
            async with asyncio.timeout(100):
                await pair.b.wait_until_active()
            assert words(pair.b) == [b"1", b"2", *others]
            assert (await pair.b.submit(b"next")).txid == 3 + len(others)
        await asyncio.sleep(20_000)
        assert words(pair.a) == [b"1", b"2", *others, b"next"]


@in_virtual_time
@pytest.mark.rule("J10", "J9")
async def test_a_standby_begins_anew_when_edits_were_discarded_and_its_snapshots_are_taken_at_their_ids_again() -> None:
    """It went on with the next id; and the id of the snapshot that was discarded kept it from taking another one."""
    others = [b"other %d" % n for n in range(3, 5)]
    async with DiscardedUnder(*others, edits=3, retention=RetentionPolicy(extra_txns=100)) as pair:
        async with await open_snapshots("mem:x", hub=pair.hub) as store:
            assert [info.at for info in await store.list()] == [4], "a standby has offered it, and the other adopted it"
        await pair.discard()
        await asyncio.sleep(5)
        assert words(pair.a) == words(pair.b) == [b"1", b"2", *others]
        async with await EditLog.open("mem:x", hub=pair.hub) as log:
            assert [info.at for info in await log.adopt_snapshots()] == [4], "of the edits that are there now"
        async with await open_snapshots("mem:x", hub=pair.hub) as store:
            found = await store.load()
        assert found is not None and found[1].endswith(b"1\n2\nother 3\nother 4\n")


@in_virtual_time
async def test_requests_before_a_snapshot_are_known_after_it() -> None:
    async with Pair() as pair:
        first = await pair.a.submit(b"x", request=RequestId(b"c", 1))
        await pair.a.checkpoint()
        async with replica_of(pair.hub, Candidate(pair.ballot, "c")) as late:
            pair.ballot.elect("c")
            await late.wait_until_active()
            assert await late.submit(b"x", request=RequestId(b"c", 1)) == first


def damage(file: Path) -> None:
    """Flip a bit of its last byte."""
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


async def test_a_damaged_snapshot_is_passed_over_for_the_one_before(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    async with replicated(uri, Ledger(), name="a", threads=False) as first:
        await first.wait_until_active()
        for text in (b"x", b"y"):
            await first.submit(text)
            await first.checkpoint()
        await first.submit(b"z")
    damage(tmp_path / "edits" / f"snapshot_{2:019}")
    second = replicated(uri, Ledger(), name="b", threads=False)
    async with second:
        await second.wait_until_active()
        assert words(second) == [b"x", b"y", b"z"]
        assert second.status().newest_snapshot == 1


@pytest.mark.parametrize("known", ["applied", "snapshot"])
async def test_a_journal_that_was_put_back_to_an_older_state_is_named(tmp_path: Path, known: str) -> None:
    """The replica stopped by a rule that did not hold, and said that this was a bug, or damaged memory."""
    uri, edits, older, ballot = f"file://{tmp_path}/edits", tmp_path / "edits", tmp_path / "older", Ballot("a")
    one, two = [
        replicated(uri, Ledger(), name=name, threads=False, election=Candidate(ballot, name)) for name in ("a", "b")
    ]
    async with one:
        await one.wait_until_active()
        await one.submit(b"x")
        shutil.copytree(edits, older)
        await one.submit(b"y")
        if known == "snapshot":
            await one.checkpoint()
            shutil.copy(edits / f"snapshot_{2:019}", older)
        else:
            await two.start()
            while two.applied < 2:  # noqa: ASYNC110  # a standby tells nobody how far it is
                await asyncio.sleep(0.01)
        shutil.rmtree(edits)
        older.rename(edits)
        ballot.elect("b")
        if known == "snapshot":
            await two.start()
        with pytest.raises(ReplicaFailedError, match=r"ends at edit 1, and .* up to 2"):
            async with asyncio.timeout(10):
                await two.wait_until_active()
        await two.close()


@pytest.mark.rule("J2", "C4")
async def test_one_that_was_active_names_its_journal_that_was_put_back_under_it(tmp_path: Path) -> None:
    """What it knew to be durable was forgotten with the state that it had to rebuild, because more was applied than was
    durable: it went on without edits that it had acknowledged, and said nothing."""
    edits, older, ballot = tmp_path / "edits", tmp_path / "older", Ballot("a")
    one = replicated(f"file://{edits}", Ledger(), name="a", threads=False, election=Candidate(ballot, "a"))
    async with one:
        await one.wait_until_active()
        await one.submit(b"x")
        shutil.copytree(edits, older)
        await one.submit(b"y")
        shutil.rmtree(edits)
        older.rename(edits)
        async with await open_writer(f"file://{edits}", threads=False):
            pass
        with pytest.raises((JournalFencedError, JournalFailedError)):
            for n in range(1000):
                await one.submit(b"not durable %d" % n)
                await one.checkpoint()
        with pytest.raises(ReplicaFailedError, match=r"ends at edit 1, and .* up to [2-9]"):
            async with asyncio.timeout(10):
                while True:
                    await one.wait_until_active()
                    await asyncio.sleep(0)
        assert role(one) is ReplicaRole.FAILED


@pytest.mark.rule("J2", "C4")
@pytest.mark.parametrize("others", [(), (b"other", b"another")])
async def test_a_standby_names_its_journal_that_was_put_back_under_it(
    tmp_path: Path, others: tuple[bytes, ...]
) -> None:
    """It warned of a gap, forgot what it had applied, and followed the older journal as if nothing had been in it."""
    edits, older, ballot = tmp_path / "edits", tmp_path / "older", Ballot("nobody")
    uri = f"file://{edits}"
    async with await EditLog.open(uri, threads=False) as log:
        await log.log(b"x")
    shutil.copytree(edits, older)
    async with await EditLog.open(uri, threads=False) as log:
        await log.log(b"y")
    config = config_of(doubt_s=0.0, follow_poll_s=0.01, retry_s=0.01)
    two = replicated(uri, Ledger(), name="b", config=config, threads=False, election=Candidate(ballot, "b"))
    async with two:
        while two.applied < 2:  # noqa: ASYNC110  # a standby tells nobody how far it is
            await asyncio.sleep(0.01)
        edits.rename(tmp_path / "newest")
        async with await EditLog.open(f"file://{older}", threads=False):
            pass
        async with await EditLog.open(f"file://{older}", threads=False) as log:
            for word in others:
                await log.log(word)
        older.rename(edits)
        with pytest.raises(ReplicaFailedError, match="put back to an older state"):
            async with asyncio.timeout(10):
                await two.wait_until_active()


async def test_one_whose_lock_file_was_removed_answers_no_reads_any_more(tmp_path: Path) -> None:
    """It went on to answer them for five seconds, without the edits of the one that was elected meanwhile."""
    uri = f"file://{tmp_path}/edits"
    async with replicated(uri, Ledger(), name="a", threads=False, config=config_of(doubt_s=0.0)) as one:
        await one.wait_until_active()
        await one.submit(b"x")
        assert await one.read(lambda: words(one)) == [b"x"]
        (tmp_path / "edits" / "active.lock").unlink()
        with pytest.raises(NotActiveError):
            await one.read(lambda: words(one))


# -- the end -------------------------------------------------------------------------------------------


@in_virtual_time
async def test_after_a_close_in_order_the_next_one_is_active_at_once_and_finds_final_segments() -> None:
    async with Pair() as pair:
        await pair.submit(b"x")
        await pair.a.close()
        await pair.a.close()
        await pair.b.wait_until_active()
        assert pair.candidates[0].closed
        async with await open_reader("mem:x", hub=pair.hub) as reader:
            assert [segment.last for segment in await reader.segments()] == [1]
        for call in (pair.a.submit(b"x"), pair.a.read(lambda: 1), pair.a.wait_until_active()):
            with pytest.raises(JournalClosedError):
                await call


@in_virtual_time
async def test_whoever_waits_to_be_active_is_told_of_the_end() -> None:
    async with Pair() as pair:
        waiting = asyncio.create_task(pair.b.wait_until_active())
        await asyncio.sleep(1)
        await pair.b.close()
        with pytest.raises(JournalClosedError):
            await waiting


@in_virtual_time
async def test_a_close_does_not_wait_long_for_a_journal_that_does_not_answer() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        gate = Gate(monkeypatch)
        async with Pair() as pair:
            gate.open.clear()
            writing = asyncio.create_task(pair.a.submit(b"x"))
            await asyncio.sleep(1)
            async with asyncio.timeout(5):
                await pair.a.close()
            with pytest.raises((JournalFailedError, JournalClosedError)):
                await writing


@in_virtual_time
async def test_the_status_says_who_is_active_and_how_far_everyone_is() -> None:
    async with Pair() as pair:
        await pair.submit(b"x")
        await asyncio.sleep(1)
        a, b = pair.a.status(), pair.b.status()
        assert (a.name, a.role, a.epoch, a.applied, a.durable, a.active) == ("a", ReplicaRole.ACTIVE, 1, 1, 1, "a")
        assert (b.name, b.role, b.epoch, b.applied, b.durable, b.active) == ("b", ReplicaRole.STANDBY, 0, 1, 1, "a")
