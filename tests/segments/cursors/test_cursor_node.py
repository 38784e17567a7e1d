"""Cursor records at their paths."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.chains.owned_node import OwnedNode
from bookkeeper.errors import MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.stores.memory import MemoryStore
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor_format import encode_cursor
from segments.cursors.cursor_node import CURSORS_MAX, CURSORS_OF_ONE_MAX, CursorNode, cursor_names, read_cursors
from segments.cursors.cursor_state import CursorState
from segments.errors import CursorNotFoundError, StreamAccessError, StreamCorruptError, TooManyCursorsError
from segments.position import EARLIEST, Position
from tests.segments.read.built_stream import BuiltStream, simulated


def test_records_are_made_once_listed_replaced_and_deleted() -> None:
    """SEG-86: names with any sign are kept apart."""

    async def story(stream: BuiltStream) -> None:
        metadata = stream.client.metadata_store
        assert await cursor_names(metadata, "built", "built") == ()
        for name in ("b/1", "b", "ü.x"):
            record = CursorNode(metadata, "built", "built", name)
            assert await record.create(CursorState.create(Mark(0, EARLIEST), 1))
            assert not await record.create(CursorState.create(Mark(9, EARLIEST), 1))
        assert await cursor_names(metadata, "built", "built") == ("b", "b/1", "ü.x")
        assert (await record.read())[0].mark.seq_no == 0
        with pytest.raises(MetadataConflictError, match="can be read"):
            await record.overwrite(CursorState.create(Mark(4, Position(1, 4, 0)), 2))
        await stream.node.store.set(record.path, b"?", None)
        await record.overwrite(CursorState.create(Mark(4, Position(1, 4, 0)), 2))
        states = await read_cursors(metadata, "built", "built")
        assert states["ü.x"].mark.seq_no == 4
        assert await record.delete() and not await record.delete()
        with pytest.raises(CursorNotFoundError, match="has no cursor"):
            await record.read()
        await stream.node.store.set(CursorNode(metadata, "built", "built", "b").path, b"?", None)
        with pytest.raises(StreamCorruptError):
            await read_cursors(metadata, "built", "built")

    simulated(story)


@pytest.mark.rule("C5")
def test_the_owner_of_a_deleted_cursor_moves_none_of_its_name() -> None:
    """The versions of one that was made anew begin again, and reach those of the old one."""

    async def story(stream: BuiltStream) -> None:
        metadata = stream.client.metadata_store
        old = CursorNode(metadata, "built", "built", "c")
        await old.create(CursorState.create(Mark(0, EARLIEST), 1, "n1"))
        owner = await OwnedNode.claim(old, "old", "n2")
        await CursorNode(metadata, "built", "built", "c").delete()
        new = CursorNode(metadata, "built", "built", "c")
        await new.create(CursorState.create(Mark(3, Position(1, 3, 0)), 2, "n3"))
        await OwnedNode.claim(new, "new", "n4")
        with pytest.raises(NoSuchKeyError, match="anew"):
            await owner.step(lambda state: state.reset(Mark(9, Position(1, 9, 0)), 3))
        state, _ = await new.read()
        assert (state.owner, state.mark.seq_no) == ("new", 3)

    simulated(story)


async def fill(stream: BuiltStream, count: int, by: str = "") -> None:
    """Cursors that were made before, as many as may be."""
    state = encode_cursor(CursorState.create(Mark(0, EARLIEST), 1, by=by))
    for at in range(count):
        await stream.node.store.create(named(stream, f"{by}-{at}").path, state, parents=True)


def named(stream: BuiltStream, name: str) -> CursorNode:
    return CursorNode(stream.client.metadata_store, "built", "built", name)


@pytest.mark.rule("X35")
def test_a_stream_takes_no_cursor_beyond_its_limit_and_a_refused_one_leaves_nothing() -> None:
    async def story(stream: BuiltStream) -> None:
        await fill(stream, CURSORS_MAX - 1)
        made = CursorState.create(Mark(0, EARLIEST), 1, nonce="n")
        answers = await asyncio.gather(
            *(named(stream, f"racing-{at}").create(made) for at in range(5)), return_exceptions=True
        )
        count = len(await cursor_names(stream.client.metadata_store, "built", "built"))
        assert count <= CURSORS_MAX and answers.count(True) == count - (CURSORS_MAX - 1)
        refusals = [each for each in answers if each is not True]
        assert refusals and all(isinstance(each, TooManyCursorsError) for each in refusals)
        await fill_up(stream, CURSORS_MAX - count)
        with pytest.raises(TooManyCursorsError, match="bk stream cursor list built"):
            await named(stream, "more").create(made)
        assert not await named(stream, "-0").create(made), "one that is there already is no new one"
        assert await named(stream, "-0").delete() and await named(stream, "more").create(made)

    simulated(story)


async def fill_up(stream: BuiltStream, count: int) -> None:
    for at in range(count):
        assert await named(stream, f"last-{at}").create(CursorState.create(Mark(0, EARLIEST), 1))


def test_one_name_leaves_cursors_to_the_others() -> None:
    async def story(stream: BuiltStream) -> None:
        await fill(stream, CURSORS_OF_ONE_MAX, by="a")
        for by, may in (("a", False), ("b", True), ("", True)):
            made = CursorState.create(Mark(0, EARLIEST), 1, nonce="n", by=by)
            if may:
                assert await named(stream, f"of-{by}").create(made)
            else:
                with pytest.raises(TooManyCursorsError, match=r"^a has 100 cursors of stream built"):
                    await named(stream, f"of-{by}").create(made)

    simulated(story)


def test_who_may_delete_is_asked_about_the_node_that_goes() -> None:
    """Somebody else has replaced it since it was read."""

    async def story(stream: BuiltStream) -> None:
        store = stream.node.store
        node = CursorNode(stream.client.metadata_store, "built", "built", "c")
        await node.create(CursorState.create(Mark(0, EARLIEST), 1, "n1", by="mine"))
        others = encode_cursor(CursorState.create(Mark(0, EARLIEST), 1, "n2", by="theirs"))
        asked: list[str | None] = []

        def may_move(whose: str | None) -> None:
            asked.append(whose)
            if whose == "theirs":
                raise StreamAccessError("it is theirs")
            assert isinstance(store, MemoryStore)
            store._cluster.write(0, lambda transaction: transaction.set(node.path, others, None))

        with pytest.raises(StreamAccessError):
            await node.delete(may_move)
        assert asked == ["mine", "theirs"] and (await node.read())[0].by == "theirs"

    simulated(story)
