"""What batches leave is deleted, and nothing that is, or may still become, part of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.meta.store import Operation, settled_delete
from segments import BatchKey, BatchRefusedError
from segments.entries.columns import RecordColumns
from segments.publish import StagedRows
from segments.publish.staged_writer import StagedWriter
from segments.retention import stagings as stagings_module
from segments.retention.deletion import LeakedLedgers
from segments.retention.stagings import LEASE_MS, Stagings
from segments.stream import Stream
from tests.segments.publish.cluster import Programs, story, values_of
from tests.segments.publish.test_publisher import staged


def ledgers(rows: object) -> list[int]:
    return sorted(each.ledger.ledger_id for each in rows if each.ledger is not None)  # type: ignore[attr-defined]


@story
async def test_a_pass_of_retention_deletes_what_nobody_has_renewed_and_only_that(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "old", [b"a"], [b"b"])
        assert (await stream.apply_retention()).deleted == ()
        there = [ledger async for ledger in stream.client.list_ledgers()]
        assert sorted(there) == ledgers(rows)
        stagings = Stagings(stream.client, stream.id, stream.name)

        async def named() -> set[int]:
            return set((await stream.chain()).ledgers)

        now_ms = stream.client.services.seams.clock.wall_ms()
        assert await stagings.clean(named, now_ms + LEASE_MS - 1000) == []
        assert sorted(await stagings.clean(named, now_ms + LEASE_MS + 1000)) == ledgers(rows)
        assert [ledger async for ledger in stream.client.list_ledgers()] == []
        assert not await stagings.has("old")


@story
async def test_a_batch_that_is_renewed_is_not_given_up(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "long", [b"a"])
        stagings = Stagings(stream.client, stream.id, stream.name)
        now_ms = stream.client.services.seams.clock.wall_ms()
        await stagings.renew("long", "a", now_ms + LEASE_MS)

        async def named() -> set[int]:
            return set()

        assert await stagings.clean(named, now_ms + LEASE_MS + 1000) == []
        await (await stream.publisher()).publish(BatchKey("a", "q", 0), rows)
        assert await values_of(stream) == [b"a"]


@story
async def test_a_batch_that_is_renewed_while_it_is_judged_is_not_given_up(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "long", [b"a"])
        stagings = Stagings(stream.client, stream.id, stream.name)
        now_ms = stream.client.services.seams.clock.wall_ms() + LEASE_MS + 1000

        async def named() -> set[int]:
            return set()

        async def renewed(*args: Any, **how: Any) -> None:
            patched.undo()
            await stagings.renew("long", "a", now_ms)
            await settled_delete(*args, **how)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(stagings_module, "settled_delete", renewed)
            assert await stagings.clean(named, now_ms) == []
        await (await stream.publisher()).publish(BatchKey("a", "q", 0), rows)
        assert await values_of(stream) == [b"a"]


@story
async def test_a_ledger_that_was_published_stays_also_if_it_is_noted_once_more(programs: Programs) -> None:
    """By a task whose note got no answer, and who repeats it."""
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"])
        await (await stream.publisher()).publish(BatchKey("a", "q", 0), rows)
        stagings = Stagings(stream.client, stream.id, stream.name)
        (ledger,) = ledgers(rows)
        await stagings.note_ledger("s", ledger)

        async def named() -> set[int]:
            return set((await stream.chain()).ledgers)

        assert await stagings.clean(named, 0, own=["s"]) == []
        assert await values_of(stream) == [b"a"]
        assert not await stagings._names()


@story
async def test_ledgers_of_a_batch_that_may_still_be_published_are_no_orphans(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"])
        orphans = LeakedLedgers(stream.client)
        assert await orphans.find(older_than_s=-1) == ()
        stagings = Stagings(stream.client, stream.id, stream.name)
        await stream.client.metadata_store.store.delete(stagings._path("s"), None)
        assert [orphan.ledger for orphan in await orphans.find(older_than_s=-1)] == ledgers(rows)


@pytest.mark.rule("S14", "C6")
@story
async def test_a_task_that_comes_late_does_not_bring_a_batch_back_that_was_given_up(programs: Programs) -> None:
    """The cause: it began the staging anew while a cleaner was about to delete the ledgers of the other tasks; the
    batch was published, and then they were deleted."""
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"], app="a")
        publisher = await stream.publisher()

        async def named() -> set[int]:
            before = set((await stream.chain()).ledgers)
            late = await staged(stream, "s", [b"b"], app="a")
            with pytest.raises(BatchRefusedError, match="was given up"):
                await publisher.publish(BatchKey("a", "q", 0), [*rows, *late])
            return before

        stagings = Stagings(stream.client, stream.id, stream.name)
        assert await stagings.clean(named, 0, app="a") == ledgers(rows)
        assert await values_of(stream) == []
        assert len(await publisher.clean("a")) == 1, "what the late task wrote"


@story
async def test_a_cleaner_that_died_before_it_deleted_a_ledger_is_followed_by_another(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"], [b"b"])
        stagings = Stagings(stream.client, stream.id, stream.name)

        async def dies() -> set[int]:
            raise MetadataUnavailableError("the cleaner ends here")

        with pytest.raises(MetadataUnavailableError):
            await stagings.clean(dies, 0, own=["s"])
        assert (await (await stream.publisher()).clean()) == ledgers(rows)
        assert [ledger async for ledger in stream.client.list_ledgers()] == []


@pytest.mark.rule("S14")
@story
async def test_a_ledger_that_is_being_deleted_is_not_noted_again(programs: Programs) -> None:
    """A task whose note got no answer repeats it after the cleaner has read what the stream names: were it noted, the
    batch could be published, and then its ledger deleted."""
    async with programs.stream() as stream, programs.stream() as other:
        (ledger,) = ledgers(await staged(stream, "s", [b"a"]))
        late = Stagings(other.client, other.id, other.name)
        stagings = Stagings(stream.client, stream.id, stream.name)
        now_ms = stream.client.services.seams.clock.wall_ms()

        async def named() -> set[int]:
            await late.begin("s", "a", now_ms)
            await late.note_ledger("s", ledger)
            assert not await late.has("s", [ledger])
            return set()

        assert await stagings.clean(named, now_ms, app="a") == [ledger]
        assert not await late.has("s", [ledger])


@pytest.mark.parametrize("sent", [True, False])
def test_a_note_that_got_no_answer_is_repeated(sent: bool) -> None:
    @story
    async def told(programs: Programs) -> None:
        async with programs.stream() as stream:
            stagings = Stagings(stream.client, stream.id, stream.name)
            await stagings.begin("s", "a", 0)
            store: Any = stream.client.metadata_store.store
            write = store.multi

            async def multi(operations: Sequence[Operation]) -> object:
                store.multi = write
                if sent:
                    await write(operations)
                raise MetadataUnavailableError("the reply was lost")

            store.multi = multi
            await stagings.note_ledger("s", 7)
            assert await stagings.has("s", [7])

    told()


HOUR_MS = 3_600_000


async def published(stream: Stream, rows: Sequence[StagedRows]) -> None:
    await (await stream.publisher(take_over=True)).publish(BatchKey("a", "q", 0), rows)
    assert await values_of(stream) == [b"a"]


@pytest.mark.rule("S14")
@story
async def test_a_clock_that_is_put_on_by_an_hour_gives_no_batch_up_that_is_being_written(programs: Programs) -> None:
    """The cause: whoever publishes looked at its wall clock, by which the batches of all others were too old."""
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"])
        machine = programs.cluster.client.clock
        publisher = await stream.publisher()
        machine.wall_offset_ms = HOUR_MS
        assert await publisher.clean("other") == [], "a step while it runs"
        await publisher.close()
        machine.wall_offset_ms = 0
        await published(stream, rows)


@pytest.mark.rule("S14")
@story
async def test_a_clock_that_is_wrong_from_the_beginning_is_compared_with_others(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = await staged(stream, "s", [b"a"])
        stagings, now_ms = Stagings(stream.client, stream.id, stream.name), stream.client.services.seams.clock.wall_ms()

        async def named() -> set[int]:
            return set()

        async def right() -> int:
            return now_ms

        assert await stagings.clean(named, now_ms + HOUR_MS, agreed_ms=right) == []
        await published(stream, rows)


@pytest.mark.rule("S14")
@story
async def test_a_writer_whose_clock_is_put_back_by_an_hour_keeps_its_batch(programs: Programs) -> None:
    """The cause: it renewed its batch with a time that was too old for everybody whose clock was right."""
    async with programs.stream() as stream:
        machine = programs.cluster.client.clock
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "s", "a", inline=-1)
        right_ms = machine.wall_ms()
        machine.wall_offset_ms = -HOUR_MS
        await writer.add(RecordColumns.of_values([b"a"]))
        rows = [await writer.finish()]
        stagings = Stagings(stream.client, stream.id, stream.name)

        async def named() -> set[int]:
            return set()

        assert await stagings.clean(named, right_ms) == []
        machine.wall_offset_ms = 0
        await published(stream, rows)
