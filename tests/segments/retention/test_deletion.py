"""Deleting a stream: every step can be the last one before a crash, and nothing leaks."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import BookKeeper
from bookkeeper.errors import BookieUnavailableError, BookKeeperError, SessionExpiredError
from segments.chain import SegmentContents, ledger_tags
from segments.directory.directory import rename_stream, stream_names
from segments.errors import StreamHeldError, StreamNotFoundError, StreamUnavailableError
from segments.names import name_path, streams_path
from segments.retention.chain_steps import change_chain
from segments.retention.deletion import LeakedLedgers, delete_stream, finish_deletions, stream_of, unfinished_deletions
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.stagings import Stagings
from tests.segments.chain.pages import fold, make_pages_small
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


async def nothing_is_left(client: BookKeeper) -> None:
    metadata = client.metadata_store
    assert await ledgers_of(client) == set()
    assert await stream_names(metadata) == {}
    assert await metadata.store.children(streams_path(metadata)) == []
    assert await unfinished_deletions(client) == ()


def test_everything_goes() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        await change_chain(record, lambda chain: chain.truncate(at(2)).remove(1))
        await delete_stream(client, "orders")
        await nothing_is_left(client)
        with pytest.raises(StreamNotFoundError):
            await delete_stream(client, "orders")

    run(story)


def test_other_streams_stay() -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client)
        other = await make_stream(client, "others")
        before = (await other.read())[0]
        await delete_stream(client, "orders")
        assert (await other.read())[0] == before and await ledgers_of(client) == set(before.ledgers)

    run(story)


def test_a_writer_is_overtaken() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        open_ledger = (await record.read())[0].segments[-1].ledger_id
        assert open_ledger in await ledgers_of(client)
        await delete_stream(client, "orders")
        with pytest.raises(StreamNotFoundError):
            await change_chain(record, lambda chain: chain.release())

    run(story)


def test_only_the_stream_that_was_meant_goes() -> None:
    """A call of a gateway that stood still may come when another stream has the name."""

    async def story(client: BookKeeper) -> None:
        present = (await make_stream(client)).stream_id
        with pytest.raises(StreamNotFoundError, match="no stream orders with id of-a-former-one"):
            await delete_stream(client, "orders", only="of-a-former-one")
        assert list(await stream_names(client.metadata_store)) == ["orders"]
        await delete_stream(client, "orders", only=present)
        await nothing_is_left(client)

    run(story)


def test_a_hold_keeps_the_stream_unless_forced() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await HoldNode(client.metadata_store, record).put(Hold("audit"), 0)
        with pytest.raises(StreamHeldError, match="hold audit is on stream orders"):
            await delete_stream(client, "orders")
        assert set(await stream_names(client.metadata_store)) == {"orders"}
        await delete_stream(client, "orders", force=True)
        await nothing_is_left(client)

    run(story)


@pytest.mark.rule("M8")
@pytest.mark.parametrize("meanwhile", ["made anew", "renamed"])
def test_a_deletion_without_an_answer_deletes_no_other_stream(meanwhile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt was done, somebody has finished it, and made another stream of this name; or it was not done,
    and somebody has renamed the stream."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        store, metadata = client.metadata_store.store, client.metadata_store
        really = store.multi

        async def multi(operations: object) -> object:
            monkeypatch.undo()
            if meanwhile == "renamed":
                await rename_stream(client, "orders", "kept")
            else:
                await really(operations)  # type: ignore[arg-type]
                await finish_deletions(client)
                await store.create(name_path(metadata, "orders"), b"another")
            raise SessionExpiredError("the session ended")

        monkeypatch.setattr(store, "multi", multi)
        if meanwhile == "renamed":
            with pytest.raises(StreamNotFoundError, match="nothing was deleted"):
                await delete_stream(client, "orders")
            assert await ledgers_of(client) == set((await record.read())[0].ledgers)
        else:
            await delete_stream(client, "orders")
            assert await stream_names(metadata) == {"orders": "another"}

    run(story)


@pytest.mark.parametrize("survives", range(12))
def test_a_deletion_that_stops_anywhere_can_be_finished(survives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deleter's call number ``survives`` that changes something is its last."""

    async def story(client: BookKeeper) -> None:
        await make_stream(client, opened=True)
        store, left = client.metadata_store.store, [survives]

        def dying(name: str, target: object) -> None:
            really = getattr(target, name)

            async def call(*args: object, **kwargs: object) -> object:
                if left[0] == 0:
                    raise asyncio.CancelledError
                left[0] -= 1
                return await really(*args, **kwargs)

            monkeypatch.setattr(target, name, call)

        with monkeypatch.context():
            for name in ("multi", "delete", "set", "create"):
                dying(name, store)
            try:
                await delete_stream(client, "orders")
            except (asyncio.CancelledError, BookKeeperError):
                pass
        monkeypatch.undo()
        await finish_deletions(client)
        if "orders" in await stream_names(client.metadata_store):
            await delete_stream(client, "orders")
        await nothing_is_left(client)

    run(story)


def test_a_ledger_that_cannot_be_deleted_now_is_told_and_deleted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: BookKeeper) -> None:
        await make_stream(client)
        really = client.delete_ledger

        async def delete(ledger_id: int) -> None:
            raise BookieUnavailableError("not now")

        monkeypatch.setattr(client, "delete_ledger", delete)
        with pytest.raises(StreamUnavailableError, match="3 of its ledgers could not be deleted"):
            await delete_stream(client, "orders")
        monkeypatch.setattr(client, "delete_ledger", really)
        assert [tombstone.name for tombstone in await unfinished_deletions(client)] == ["orders"]
        await finish_deletions(client)
        await nothing_is_left(client)

    run(story)


def test_leaked_ledgers_are_found_and_those_that_may_be_named_are_not() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, epoch=3)
        named = await ledgers_of(client)

        async def ledger(stream_id: str, epoch: int) -> int:
            async with await client.create_ledger(custom_metadata=ledger_tags(stream_id, epoch)) as handle:
                return int(handle.id)

        of_a_former_owner = await ledger(record.stream_id, 2)
        of_the_owner = await ledger(record.stream_id, 3)
        of_no_stream = await ledger("gone", 1)
        await asyncio.sleep(100)
        young = await ledger("gone", 1)
        leaks = LeakedLedgers(client)
        found = await leaks.find(older_than_s=60)
        assert {orphan.ledger for orphan in found} == {of_a_former_owner, of_no_stream}
        assert {stream_of(orphan) for orphan in found} == {record.stream_id, "gone"}
        assert await leaks.find(older_than_s=1000) == ()
        await leaks.delete(older_than_s=60)
        assert await ledgers_of(client) == named | {of_the_owner, young}

    run(story)


def test_ledgers_of_a_stream_whose_record_is_damaged_are_left_alone() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await record.store.set(record.path, b"rubbish", None)
        await asyncio.sleep(100)
        assert await LeakedLedgers(client).find(older_than_s=60) == ()

    run(story)


def test_a_stream_with_pages_goes_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pages_small(monkeypatch)

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=7, opened=True)
        chain = await fold(record)
        assert len(chain.pages) == 3 and set(chain.ledgers) == await ledgers_of(client)
        await asyncio.sleep(100)
        assert await LeakedLedgers(client).find(60) == ()
        await delete_stream(client, "orders")
        await nothing_is_left(client)

    run(story)


@pytest.mark.rule("C9")
def test_what_is_published_while_leaks_are_looked_for_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batch may still be published when the node is read, and is published when that is asked for."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, epoch=3)
        tags = {**ledger_tags(record.stream_id, 2), "staging": b"s"}
        async with await client.create_ledger(custom_metadata=tags) as ledger:
            pass

        async def published(self: Stagings, staging: str, ledgers: object = ()) -> bool:
            await change_chain(record, lambda chain: chain.publish([(ledger.id, SegmentContents(last_entry=0))], 1))
            return False

        monkeypatch.setattr(Stagings, "has", published)
        await asyncio.sleep(100)
        assert await LeakedLedgers(client).find(older_than_s=60) == ()

    run(story)
