"""Holds in the metadata store: put, moved, released, and never on what is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from bookkeeper import BookKeeper
from bookkeeper.meta.store import Version, settled_set_if
from bookkeeper.testing.cluster import SimCluster
from segments.errors import (
    HoldNotFoundError,
    StreamConfigError,
    StreamHeldError,
    StreamNameError,
    StreamNotFoundError,
)
from segments.position import LATEST
from segments.retention import chain_steps, hold_node
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.truncation import truncate
from tests.segments.retention.chains import at
from tests.segments.retention.streams import make_stream, run


def test_put_move_release() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds = HoldNode(client.metadata_store, record)
        assert len((await holds.read())[0]) == 0
        assert await holds.put(Hold("a", at(2)), 0) == Hold("a", at(2))
        await asyncio.gather(*(holds.put(Hold(name, at(2)), 0) for name in "bcd"))
        await holds.put(Hold("a", at(3)), 0)
        assert [hold.name for hold in (await holds.read())[0]] == ["b", "c", "d", "a"]
        await holds.release("a")
        with pytest.raises(HoldNotFoundError):
            await holds.release("a")
        assert len((await HoldNode(client.metadata_store, record).read())[0]) == 3

    run(story)


def test_expired_ones_are_swept_with_the_next() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds = HoldNode(client.metadata_store, record)
        await holds.put(Hold("short", at(2), until_ms=100), 0)
        await holds.put(Hold("new", at(2)), 100)
        assert [hold.name for hold in (await holds.read())[0]] == ["new"]

    run(story)


def test_no_hold_on_what_is_truncated_or_of_a_stream_that_is_gone() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds = HoldNode(client.metadata_store, record)
        await truncate(client, record, at(2, 1))
        with pytest.raises(StreamConfigError, match="the stream at 2:1:0"):
            await holds.put(Hold("late", at(2)), 0)
        assert (await holds.put(Hold("all"), 0)).start == at(2, 1)
        with pytest.raises(StreamNameError):
            await holds.put(Hold("a b", at(3)), 0)
        await record.store.delete(record.path, None)
        await record.store.delete(record.path.replace("chain", "holds"), None)
        with pytest.raises(StreamNotFoundError):
            await holds.read()
        assert await record.store.exists(record.path.replace("chain", "holds")) is None

    run(story)


def test_a_change_is_asked_about_the_hold_as_it_is_then() -> None:
    """Somebody else may have put one of this name while the change was under way; one that has ended asks nobody."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds, asked = HoldNode(client.metadata_store, record), list[str]()

        def refuse(hold: Hold) -> None:
            asked.append(hold.by)
            raise StreamNameError("not yours")

        await asyncio.gather(
            holds.put(Hold("a", at(2), by="first"), 0),
            holds.put(Hold("a", at(3), by="second"), 0, lambda hold: asked.append(hold.by)),
        )
        assert asked[-1:] in ([], ["first"])
        with pytest.raises(StreamNameError, match="not yours"):
            await holds.put(Hold("a", at(3)), 0, refuse)
        with pytest.raises(StreamNameError, match="not yours"):
            await holds.release("a", refuse)
        with pytest.raises(HoldNotFoundError):
            await holds.release("b", refuse)
        await holds.put(Hold("short", at(2), until_ms=100), 0)
        assert (await holds.put(Hold("short", at(3), by="next"), 100, refuse)).by == "next"

    run(story)


@pytest.mark.rule("M8")
@pytest.mark.parametrize("since", ["nothing", "another hold", "the same name"])
def test_a_release_without_an_answer_removes_no_later_hold(monkeypatch: pytest.MonkeyPatch, since: str) -> None:
    """It was done, and somebody has changed the holds since. The repetition removed the hold that had the name by then,
    or told its caller that there was none."""

    async def story(client: BookKeeper) -> None:
        node = await make_stream(client)
        holds = HoldNode(client.metadata_store, node)
        await holds.put(Hold("a", at(2), note="old"), 0)

        async def answer_lost(*args: Any) -> Version:
            patched.undo()
            await settled_set_if(*args)
            if since != "nothing":
                await holds.put(Hold("a" if since == "the same name" else "b", at(3), note="new"), 0)
            return await settled_set_if(*args)

        with monkeypatch.context() as patched:
            patched.setattr(hold_node, "settled_set_if", answer_lost)
            await holds.release("a")
        left = [(hold.name, hold.note) for hold in (await holds.read())[0]]
        assert left == {"nothing": [], "another hold": [("b", "new")], "the same name": [("a", "new")]}[since]

    run(story)


@pytest.mark.rule("M8")
def test_a_release_of_one_hold_leaves_what_has_its_name_since() -> None:
    """A call of a gateway that stood still may come after it was repeated at another one."""

    async def story(client: BookKeeper) -> None:
        holds = HoldNode(client.metadata_store, await make_stream(client))
        old = await holds.put(Hold("a", at(2), note="old"), 0)
        await holds.release("a", only=old)
        await holds.release("a", only=old)
        await holds.put(Hold("a", at(2), note="new"), 0)
        await holds.release("a", only=old)
        assert [hold.note for hold in (await holds.read())[0]] == ["new"]

    run(story)


@pytest.mark.rule("C6")
def test_a_hold_and_a_truncation_at_once_are_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is decided by what it has read, and the other comes before it is written."""

    async def story(client: BookKeeper) -> None:
        node = await make_stream(client)
        holds = HoldNode(client.metadata_store, node)
        with monkeypatch.context() as patched:
            _first(patched, hold_node, lambda: truncate(client, node, at(2, 1)))
            with pytest.raises(StreamConfigError, match="the stream at 2:1:0"):
                await holds.put(Hold("late", at(2)), 0)
        with monkeypatch.context() as patched:
            _first(patched, chain_steps, lambda: holds.put(Hold("h", at(3)), 0))
            with pytest.raises(StreamHeldError, match="hold h"):
                await truncate(client, node, LATEST)
        assert (await node.read())[0].first_position == at(2, 1)

    run(story)


@pytest.mark.rule("C6")
def test_a_hold_from_behind_the_last_record_that_went_begins_with_the_stream() -> None:
    """No record is between the two: a reader stands there, and has missed nothing."""

    async def story(client: BookKeeper) -> None:
        node = await make_stream(client)
        await truncate(client, node, at(1, 2, 2))
        assert await HoldNode(client.metadata_store, node).put(Hold("a", at(1, 2, 2)), 0) == Hold("a", at(2))
        with pytest.raises(StreamConfigError, match="the stream at 2:0:0"):
            await HoldNode(client.metadata_store, node).put(Hold("b", at(1, 2, 1)), 0)

    run(story)


@pytest.mark.rule("C6", "Z6")
def test_holds_are_read_as_they_are_also_through_a_server_that_is_behind() -> None:
    async def work(cluster: SimCluster) -> None:
        async with cluster.connect() as client, cluster.connect() as other:
            node = await make_stream(client)
            ours, theirs = HoldNode(client.metadata_store, node), HoldNode(other.metadata_store, node)
            await ours.put(Hold("a", at(2)), 0)
            for look in (theirs.read, theirs.stored):
                await other.metadata_store.store.sync("/")
                other.metadata_store.store.lag()  # type: ignore[attr-defined]
                await ours.put(Hold(look.__name__, at(2)), 0)
                found = await look()
                assert look.__name__ in (found[0] if isinstance(found, tuple) else found).by_name

    SimCluster(seed=1).run(work)


def _first(patched: pytest.MonkeyPatch, where: ModuleType, other: Callable[[], Awaitable[object]]) -> None:
    """Do something else right before the next conditional write of a module."""

    async def late(*args: Any) -> Version:
        patched.undo()
        await other()
        return await settled_set_if(*args)

    patched.setattr(where, "settled_set_if", late)
