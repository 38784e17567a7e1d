"""What a stream remembers of applications: never forgotten by itself, with a bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segments import BatchKey, BatchRefusedError
from segments.errors import StreamConfigError, StreamCorruptError
from segments.publish import app_record
from segments.publish.app_record import AppRecords
from segments.retention.checked_json import pack_json
from tests.segments.publish.cluster import Programs, story
from tests.segments.publish.test_publisher import staged


@story
async def test_applications_are_listed_and_forgotten_by_name(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        for app in ("b/c", "a"):
            await publisher.publish(BatchKey(app, "q", 3), await staged(stream, app.replace("/", "-"), [b"x", b"y"]))
        first, second = await stream.apps()
        assert (first.app, first.last, first.records, first.first_seq_no) == ("a", 3, 2, 2)
        assert (second.app, second.query, second.first_seq_no) == ("b/c", "q", 0)
        assert await stream.forget_app("b/c")
        assert not await stream.forget_app("b/c")
        assert [each.app for each in await stream.apps()] == ["a"]
        again = await publisher.publish(BatchKey("b/c", "other", 0), await staged(stream, "again", [b"z"]))
        assert not again.already_there


@story
async def test_at_the_bound_a_new_application_is_refused_and_a_known_one_goes_on(programs: Programs) -> None:
    before, app_record.APPS_MAX = app_record.APPS_MAX, 1  # type: ignore[misc]
    try:
        async with programs.stream() as stream:
            publisher = await stream.publisher()
            await publisher.publish(BatchKey("a", "q", 0), await staged(stream, "1", [b"x"]))
            with pytest.raises(BatchRefusedError, match="1 applications have published to stream totals, the most"):
                await publisher.publish(BatchKey("b", "q", 0), await staged(stream, "2", [b"y"]))
            await publisher.publish(BatchKey("a", "q", 1), await staged(stream, "3", [b"z"]))
            assert [each.last for each in await stream.apps()] == [1]
    finally:
        app_record.APPS_MAX = before  # type: ignore[misc]


@story
async def test_a_stream_that_is_deleted_takes_its_applications_along(programs: Programs) -> None:
    async with programs.cluster.connect() as client:
        from segments.namespace import connect

        async with connect("", client=client) as namespace:
            stream = await namespace.create("totals")
            publisher = await stream.publisher()
            await publisher.publish(BatchKey("a", "q", 0), await staged(stream, "1", [b"x"]))
            await namespace.delete("totals")
            assert await AppRecords(client.metadata_store, stream.id, "totals").all() == []


@story
async def test_a_server_of_the_store_that_lags_behind_is_not_believed(programs: Programs) -> None:
    """Another driver has published the batch: who asks a lagging server would publish it twice."""
    async with programs.stream() as stream, programs.stream() as other:
        records = AppRecords(other.client.metadata_store, other.id, other.name)
        store: Any = other.client.metadata_store.store
        get, sync = store.get, store.sync
        seen: dict[str, Any] = {}

        async def lagging(path: str) -> Any:
            if path not in seen:
                seen[path] = await get(path)
            return seen[path]

        async def caught_up(path: str) -> None:
            await sync(path)
            seen.pop(path, None)

        store.get, store.sync = lagging, caught_up
        publisher = await stream.publisher()
        for batch in (0, 1):
            await publisher.publish(BatchKey("a", "q", batch), await staged(stream, f"s{batch}", [b"x"]))
            record, _ = await records.read("a")
            assert record is not None
            assert record.last == batch


@story
async def test_an_application_is_given_to_somebody_and_back_to_nobody(programs: Programs) -> None:
    """What is nobody's has the bytes that it always had: versions that know no owners read it. What is somebody's they
    refuse by its format, and let nobody else publish in that name."""
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publisher.publish(BatchKey("a", "q", 0), await staged(stream, "s0", [b"x"]))
        store = stream.client.metadata_store.store
        path = f"{AppRecords(stream.client.metadata_store, stream.id, stream.name).parent}/a"

        async def stored() -> dict[str, Any]:
            found: dict[str, Any] = json.loads((await store.get(path)).value)
            return found

        nobodys = await stored()
        assert nobodys["format"] == 1 and "by" not in nobodys["value"]
        assert await stream.hand_over_app("a", "etl")
        assert [each.by for each in await stream.apps()] == ["etl"]
        assert await stored() != nobodys and (await stored())["format"] == 2
        assert (await publisher.publish(BatchKey("a", "q", 1), await staged(stream, "s1", [b"y"]))).records == 1
        assert [(each.by, each.last) for each in await stream.apps()] == [("etl", 1)], "its owner outlives its batches"
        for wrong in ("role:writer", "anyone", "e*l"):
            with pytest.raises(StreamConfigError, match="nothing was done"):
                await stream.hand_over_app("a", wrong)
        assert await stream.hand_over_app("a", "")
        assert (await stored())["format"] == 1
        assert not await stream.hand_over_app("b", "etl")


@story
async def test_what_cannot_be_read_of_an_application_is_told_and_nothing_is_published(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publisher.publish(BatchKey("a", "q", 0), await staged(stream, "s0", [b"x"]))
        records = AppRecords(stream.client.metadata_store, stream.id, stream.name)
        store = stream.client.metadata_store.store
        path = f"{records.parent}/a"
        whole = json.loads((await store.get(path)).value)["value"]
        for wrong in ({"app": "a", "last": 0}, {**whole, "by": 7}, {**whole, "more": 1}):
            await store.set(path, pack_json(app_record.FORMAT, wrong), (await store.get(path)).version)
            with pytest.raises(StreamCorruptError, match="remembers of an application cannot be read"):
                await records.read("a")
        with pytest.raises(StreamCorruptError, match="what stream totals remembers of an application cannot be read"):
            await publisher.publish(BatchKey("a", "q", 1), await staged(stream, "s1", [b"y"]))
