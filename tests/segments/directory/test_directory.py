"""Names: listing by prefix, renaming, and listeners of names and of streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper import BookKeeper
from bookkeeper.errors import MetadataUnavailableError, SessionExpiredError
from segments.directory.directory import (
    ChainChange,
    NameChange,
    NamespaceEvent,
    StreamEvent,
    diff_chains,
    diff_names,
    info_of,
    list_streams,
    rename_stream,
    stream_names,
    watch_stream,
    watch_streams,
)
from segments.errors import StreamExistsError, StreamNameError, StreamNotFoundError
from segments.names import name_path
from segments.retention.chain_steps import change_chain
from segments.retention.deletion import delete_stream
from segments.retention.truncation import truncate
from tests.segments.chain.pages import folded, long_chain, many
from tests.segments.retention.chains import at, chain_of
from tests.segments.retention.streams import make_stream, run


def test_streams_are_listed_by_prefix() -> None:
    async def story(client: BookKeeper) -> None:
        assert [info async for info in list_streams(client)] == []
        for name in ("eu/orders", "eu/pays.daily", "us/orders"):
            await make_stream(client, name, segments=1)
        assert [info.name async for info in list_streams(client, "eu/")] == ["eu/orders", "eu/pays.daily"]
        info = await anext(list_streams(client, "us"))
        assert (info.segments, info.records, info.owner, info.sealed, info.start) == (1, 6, "a writer", False, at(1))

    run(story)


def test_a_stream_has_the_records_that_readers_see() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, "orders", segments=2)
        for place, seen in ((at(1, 1), 12 - 2), (at(2), 6), (at(3), 0)):
            await truncate(client, record, place)
            info = await anext(list_streams(client))
            assert (info.records, info.truncated) == (seen, 12 - seen)

    run(story)


def test_renaming_moves_the_name_and_nothing_else() -> None:
    """SEG-26 after a rename everything is found under the new name; it is refused if that name is taken, or the old one
    does not exist. A stream that is being written can be renamed: only its name moves."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        await make_stream(client, "others", segments=1)
        before = await record.read()
        await rename_stream(client, "orders", "eu/orders")
        assert set(await stream_names(client.metadata_store)) == {"eu/orders", "others"}
        assert await record.read() == before
        with pytest.raises(StreamExistsError, match="there is a stream others already"):
            await rename_stream(client, "eu/orders", "others")
        with pytest.raises(StreamNotFoundError, match="there is no stream orders"):
            await rename_stream(client, "orders", "free")
        with pytest.raises(StreamNameError):
            await rename_stream(client, "others", "a b")
        await rename_stream(client, "others", "others")
        assert set(await stream_names(client.metadata_store)) == {"eu/orders", "others"}

    run(story)


@pytest.mark.parametrize("done", [False, True])
def test_a_rename_whose_reply_was_lost_is_settled(done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client, segments=1)
        store = client.metadata_store.store
        really, lost = store.multi, [True]

        async def multi(operations: object) -> object:
            if lost.pop() if lost else False:
                if done:
                    await really(operations)  # type: ignore[arg-type]
                raise MetadataUnavailableError("the reply was lost")
            return await really(operations)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "multi", multi)
        await rename_stream(client, "orders", "new")
        assert set(await stream_names(client.metadata_store)) == {"new"}

    run(story)


@pytest.mark.rule("M8")
def test_a_rename_that_is_settled_takes_no_other_stream_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename is done, its reply is lost, and somebody makes another stream under the old name at once."""

    async def story(client: BookKeeper) -> None:
        first = await make_stream(client, segments=1)
        store = client.metadata_store.store
        really = store.multi

        async def multi(operations: object) -> object:
            await really(operations)  # type: ignore[arg-type]
            await store.create(name_path(client.metadata_store, "orders"), b"another")
            raise SessionExpiredError("the session ended")

        monkeypatch.setattr(store, "multi", multi)
        await rename_stream(client, "orders", "new")
        assert await stream_names(client.metadata_store) == {"new": first.stream_id, "orders": "another"}

    run(story)


@pytest.mark.rule("M9")
@pytest.mark.parametrize("change", ["rename", "delete"])
def test_what_was_read_of_a_name_is_not_done_to_another_stream_that_has_it_by_then(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name has version 0 whatever it leads to: the one stream is moved away, and another one comes, in between."""

    async def story(client: BookKeeper) -> None:
        first = await make_stream(client, segments=1)
        store, names = client.metadata_store.store, client.metadata_store
        really = store.multi

        async def multi(operations: object) -> object:
            monkeypatch.setattr(store, "multi", really)
            await rename_stream(client, "orders", "moved")
            await store.create(name_path(names, "orders"), b"another")
            return await really(operations)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "multi", multi)
        if change == "rename":
            await rename_stream(client, "orders", "new")
            assert await stream_names(names) == {"moved": first.stream_id, "new": "another"}
        else:
            await delete_stream(client, "orders", force=True)
            assert await stream_names(names) == {"moved": first.stream_id}
            assert (await first.read())[0].count == 1

    run(story)


def test_a_listener_sees_creations_deletions_and_renames() -> None:
    """SEG-112 a listener of a namespace sees what is created, deleted and renamed; of its prefix only."""

    async def story(client: BookKeeper) -> None:
        await make_stream(client, "eu/a", segments=1)
        events = watch_streams(client, "eu/")
        assert await anext(events) == NamespaceEvent(NameChange.CREATED, "eu/a", "id-of-eu-a")
        waiting = asyncio.ensure_future(anext(events))
        await make_stream(client, "us/x", segments=1)
        await asyncio.sleep(1)
        assert not waiting.done()
        await make_stream(client, "eu/b", segments=1)
        assert (await waiting).name == "eu/b"
        waiting = asyncio.ensure_future(anext(events))
        await rename_stream(client, "eu/b", "eu/c")
        assert await waiting == NamespaceEvent(NameChange.RENAMED, "eu/c", "id-of-eu-b", "eu/b")
        waiting = asyncio.ensure_future(anext(events))
        await delete_stream(client, "eu/a")
        assert (await waiting).change is NameChange.DELETED
        await events.aclose()  # type: ignore[attr-defined]

    run(story)


names = st.dictionaries(st.sampled_from("abc"), st.sampled_from("1234"))


@given(names, names)
def test_the_events_between_two_listings_lead_from_one_to_the_other(
    before: dict[str, str], after: dict[str, str]
) -> None:
    if len(set(before.values())) < len(before) or len(set(after.values())) < len(after):
        return  # an id has one name
    ids = {stream_id: name for name, stream_id in before.items()}
    for event in diff_names(before, after):
        if event.change is NameChange.DELETED:
            assert ids.pop(event.stream_id) == event.name
        else:
            assert ids.get(event.stream_id) == event.was
            ids[event.stream_id] = event.name
    assert ids == {stream_id: name for name, stream_id in after.items()}


def test_changes_of_a_stream() -> None:
    """SEG-22 a listener of a stream sees segments come, end and go, truncation, claims and the seal."""
    before = chain_of(2, opened=True)
    after = before.complete(3, before.segments[0].contents, 9).truncate(at(2)).remove(1).claim("b", "n").seal()
    assert diff_chains(before, after) == (
        StreamEvent(ChainChange.CLAIMED, owner="b"),
        StreamEvent(ChainChange.SEGMENT_COMPLETED, 3),
        StreamEvent(ChainChange.TRUNCATED, position=at(2)),
        StreamEvent(ChainChange.SEGMENT_REMOVED, 1),
        StreamEvent(ChainChange.SEALED),
    )
    two = replace(before, recent=before.recent[:1])
    assert [event.change for event in diff_chains(two, before)] == [
        ChainChange.SEGMENT_STARTED,
        ChainChange.SEGMENT_COMPLETED,
        ChainChange.SEGMENT_STARTED,
    ]
    assert diff_chains(before, before) == ()


def test_a_stream_is_watched_until_it_is_deleted() -> None:
    """SEG-22 the deletion of the stream is the last event."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=2)
        events = watch_stream(record)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(1)
        await truncate(client, record, at(2))
        assert await waiting == StreamEvent(ChainChange.TRUNCATED, position=at(2))
        waiting = asyncio.ensure_future(anext(events))
        await change_chain(record, lambda chain: chain.claim("b", "n"))
        assert (await waiting).owner == "b"
        await delete_stream(client, "orders")
        assert [event.change async for event in events][-1] is ChainChange.DELETED

    run(story)


def test_changes_of_a_stream_with_pages_are_the_same() -> None:
    plain = long_chain(6).start_segment(50, 1)
    steps = [
        plain,
        plain.complete(7, many(1, 7)[0].contents, 9).start_segment(51, 10),
        plain.truncate(at(4)).remove(3),
        plain.drop_empty(7),
        plain.claim("b", "n2"),
    ]
    for after in steps:
        expected = diff_chains(plain, after)
        for size in (1, 2):
            paged = folded(plain, size, 2)
            assert diff_chains(paged, after) == diff_chains(plain, folded(after, size, 1)) == expected
            assert diff_chains(paged, folded(after, size, 1)) == expected
        assert info_of("a", after) == info_of("a", folded(after, 1, 2))
