"""The checker on real ledgers: it finds each kind of damage, changes nothing in a check, and repairs what it can."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bookkeeper import BookKeeper
from segments.chain import SegmentContents, SegmentPage, StreamChain, StreamHead, StreamPages, ledger_tags
from segments.checks.checker import CheckOptions, StreamChecker
from segments.checks.findings import Finding, Problem
from segments.names import name_path
from segments.retention.chain_steps import change_chain
from segments.retention.deletion import remove_remains
from segments.retention.retention import CursorPosition
from tests.segments.chain.pages import fold, make_pages_small, many
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


async def no_cursors(stream_id: str) -> Mapping[str, CursorPosition]:
    return {}


async def check(client: BookKeeper, **options: object) -> list[Finding]:
    found = await StreamChecker(client, no_cursors, CheckOptions(**options)).check_all()  # type: ignore[arg-type]
    return list(found)


def kinds(found: list[Finding]) -> list[Problem]:
    return [finding.problem for finding in found]


def wrong(chain: StreamChain) -> StreamChain:
    """The same record with a wrong count in segment 1, and what follows from it."""
    first, *rest = chain.segments
    first = replace(first, contents=replace(first.contents, records=5, last=(2, 0)))
    shifted = [replace(segment, start_seq_no=segment.start_seq_no - 1) for segment in rest]
    return replace(chain, recent=(first, *shifted), records=chain.records - 1)


def test_sound_streams_have_no_findings() -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client, opened=True)
        await make_stream(client, "empty", segments=0)
        assert await check(client) == []
        assert await check(client, repair=True) == []

    run(story)


def test_wrong_counts_are_repaired_and_a_check_changes_nothing() -> None:
    """SEG-110 wrong counts and sequence numbers are found and repaired; a check without repair changes nothing."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        sound, _ = await record.read()
        await change_chain(record, wrong)
        damaged = await record.read()
        expected = [Problem.COUNT, Problem.LAST, Problem.SEQUENCE, Problem.SEQUENCE]
        found = await check(client)
        assert kinds(found) == expected and not any(finding.repaired for finding in found)
        assert await record.read() == damaged
        assert await check(client, scan=False) == []
        found = await check(client, repair=True)
        assert kinds(found) == expected and all(finding.repaired for finding in found)
        after, _ = await record.read()
        assert after.segments == sound.segments and after.records == sound.records
        assert after.epoch > sound.epoch and after.owner == ""
        assert await check(client) == []

    run(story)


def test_a_ledger_that_is_gone_cannot_be_repaired_and_the_rest_can() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        chain = await change_chain(record, wrong)
        await client.delete_ledger(chain.segments[1].ledger_id, grace_s=0)
        found = await check(client, repair=True)
        assert Problem.LEDGER_MISSING in kinds(found)
        assert [f.problem for f in found if not f.repaired] == [Problem.LEDGER_MISSING]
        assert [segment.number for segment in (await record.read())[0].segments] == [1, 2, 3]

    run(story)


def test_ledgers_that_were_left_open() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        chain, _ = await record.read()
        opened = chain.segments[-1]
        three = SegmentContents(6, 0, 2, (2, 1))
        await change_chain(record, lambda chain: chain.complete(opened.number, three, 5))
        found = await check(client)
        assert kinds(found) == [Problem.LEDGER_NOT_CLOSED, Problem.STATISTICS]
        assert all(finding.repaired for finding in await check(client, repair=True))
        assert (await client.metadata(opened.ledger_id)).is_closed and await check(client) == []

    run(story)


def test_an_open_segment_whose_ledger_is_gone_blocks_no_writer_after_the_repair() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        await client.delete_ledger((await record.read())[0].segments[-1].ledger_id, grace_s=0)
        assert kinds(await check(client)) == [Problem.OPEN_LEDGER_MISSING]
        assert all(finding.repaired for finding in await check(client, repair=True))
        chain, _ = await record.read()
        assert chain.open_segment is None and chain.next_number == 5 and chain.removing == ()

    run(story)


def test_entries_of_another_kind_are_told() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=0)
        async with await client.create_ledger(custom_metadata={"stream": b"another"}) as ledger:
            await ledger.append(b"not an entry of a stream")
        chain, version = await record.read()
        chain = chain.start_segment(ledger.id, 0).complete(1, SegmentContents(last_entry=0, bytes=24), 1)
        await record.write(chain, version)
        assert kinds(await check(client)) == [Problem.LEDGER_FOREIGN, Problem.ENTRY_DAMAGED]

    run(story)


def test_what_belongs_to_no_stream() -> None:
    """SEG-110 names without a stream, streams without a name, unfinished deletions and orphans are found; what can be
    removed safely is."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        gone = await make_stream(client, "gone", segments=0)
        nameless = await make_stream(client, "nameless", segments=0)
        store = client.metadata_store.store
        await store.delete(gone.path, None)
        await store.delete(gone.path.replace("/chain", "/config"), None)
        await store.delete(gone.path.replace("/chain", "/cursors"), None)
        await store.delete(gone.path.removesuffix("/chain"), None)
        await store.delete(name_path(client.metadata_store, "nameless"), None)
        async with await client.create_ledger(custom_metadata=ledger_tags(record.stream_id, 0)) as orphan:
            pass
        await asyncio.sleep(100)
        expected = [Problem.NAME_WITHOUT_STREAM, Problem.STREAM_WITHOUT_NAME, Problem.ORPHAN]
        found = await check(client, older_than_s=60)
        assert kinds(found) == expected and found[1].stream == nameless.stream_id
        assert kinds(await check(client, older_than_s=60, orphans=False)) == expected[:2]
        assert orphan.id in await ledgers_of(client)
        found = await check(client, older_than_s=60, repair=True)
        assert [finding.repaired for finding in found] == [True, False, True]
        assert kinds(await check(client, older_than_s=60)) == [Problem.STREAM_WITHOUT_NAME]
        assert orphan.id not in await ledgers_of(client)

    run(story)


def test_a_record_that_cannot_be_read_is_told() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await record.store.set(record.path, b"rubbish", None)
        (finding,) = await check(client, repair=True)
        assert finding.problem is Problem.NODE_UNREADABLE and finding.stream == "orders" and not finding.repaired

    run(story)


def test_cursors_outside_of_the_stream_are_told() -> None:
    async def story(client: BookKeeper) -> None:
        record: StreamHead = await make_stream(client)

        async def cursors(stream_id: str) -> Mapping[str, CursorPosition]:
            assert stream_id == record.stream_id
            return {name: CursorPosition(name, at(number)) for name, number in (("fine", 2), ("beyond", 9))}

        found = await StreamChecker(client, cursors).check("orders", record.stream_id)
        assert [finding.problem for finding in found] == [Problem.CURSOR_BEYOND]

    run(story)


def test_a_stream_with_pages_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pages_small(monkeypatch)

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=8)
        sound = await fold(record)
        assert len(sound.pages) == 3 and await check(client) == []
        damaged = list(sound.segments)
        damaged[2] = replace(damaged[2], contents=replace(damaged[2].contents, last_txid=5))
        first = sound.pages[0]
        broken = replace(sound, pages=(first,), recent=tuple(damaged[2:]))
        await record.write(await record.pages.write_folded(broken), (await record.read())[1])
        assert kinds(await check(client)) == [Problem.STATISTICS]
        assert [finding.repaired for finding in await check(client, repair=True)] == [True]
        after, _ = await record.read()
        assert tuple(after.segments) == tuple(sound.segments) and after.pages[0] == first and len(after.pages) == 3
        assert await check(client) == []
        there = await record.store.children(record.path.replace("/chain", "/pages"))
        assert sorted(there) == [page.key for page in after.pages]

    run(story)


def test_what_an_import_left_is_removed_once_it_is_over() -> None:
    async def story(client: BookKeeper) -> None:
        metadata, store = client.metadata_store, client.metadata_store.store
        await make_stream(client)
        await StreamPages(metadata, "arrived").write(SegmentPage.of(many(3), 0))
        running = metadata.own("segments", "importing", "arrived")
        await store.create(running, parents=True)
        assert await check(client) == [] and not await remove_remains(metadata, "arrived")
        await store.delete(running, None)
        assert kinds(await check(client)) == [Problem.IMPORT_LEFT]
        assert [finding.repaired for finding in await check(client, repair=True)] == [True]
        assert await check(client) == []

    run(story)
