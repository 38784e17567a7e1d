"""A part of a stream is read elsewhere from what was known of it, and nothing is asked."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from segments.position import EARLIEST, LATEST, Position
from segments.read import KnownPart, StreamEnd, StreamReading, reading
from segments.read.known_streams import KnownStreams
from segments.seek import AtSeqNo
from tests.segments.read.built_stream import BuiltStream, numbers, simulated


async def known(stream: BuiltStream, start: Position, stop: Position) -> KnownPart:
    """What is known of a part, as it arrives elsewhere."""
    found = await StreamReading(stream.client, stream.node, stream._no_cursor).known(start, stop)
    arrived: KnownPart = pickle.loads(pickle.dumps(found))
    return arrived


class Asked:
    """Counts what a client asks the metadata store."""

    def __init__(self, stream: BuiltStream, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        store = stream.client.metadata_store.store
        inner = store.get

        async def get(path: str) -> Any:
            self.paths.append(path)
            return await inner(path)

        monkeypatch.setattr(store, "get", get)

    def of_the_stream(self) -> list[str]:
        """Those about the stream and its ledgers."""
        return [path for path in self.paths if "chain" in path or "/L" in path]


@pytest.mark.parametrize(
    ("start", "stop", "wanted"),
    [
        (EARLIEST, Position(4, 2, 0), range(12)),
        (Position(1, 0, 1), Position(3, 1, 1), range(1, 9)),
        (Position(2, 0, 0), Position(3, 0, 0), range(4, 6)),
        (Position(4, 0, 0), Position(4, 1, 0), range(9, 11)),
    ],
)
def test_any_part_is_read_and_nothing_asked(
    start: Position, stop: Position, wanted: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stream: BuiltStream) -> None:
        for counts in ((2, 2), (2,), (2, 1)):
            await stream.segment(*counts)
        await stream.start()
        for count in (2, 1):
            await stream.add(count)
        part = await known(stream, start, stop)
        assert {each.number for each in part.chain.segments} <= set(range(start.segment, stop.segment + 1))
        asked = Asked(stream, monkeypatch)
        reader = KnownStreams(stream.client).read(part, start, stop=stop)
        assert await numbers(reader) == list(wanted)
        assert asked.of_the_stream() == []

    simulated(story)


def test_a_smaller_part_has_its_own_ledgers_alone() -> None:
    async def story(stream: BuiltStream) -> None:
        for _ in range(3):
            await stream.segment(2)
        whole = await known(stream, EARLIEST, Position(4, 0, 0))
        part = whole.part(Position(2, 0, 1), Position(3, 0, 0))
        assert (len(whole.ledgers), set(part.ledgers)) == (3, {s.ledger_id for s in whole.chain.segments[1:]})
        assert await numbers(KnownStreams(stream.client).read(part, Position(2, 0, 1))) == [3, 4, 5]

    simulated(story)


def test_a_ledger_beyond_the_bound_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "KNOWN_MAX", 1)

    async def story(stream: BuiltStream) -> None:
        for _ in range(2):
            await stream.segment(2)
        part = await known(stream, EARLIEST, Position(3, 0, 0))
        assert len(part.ledgers) == 1
        asked, streams = Asked(stream, monkeypatch), KnownStreams(stream.client)
        await streams.learn(part.cluster)
        assert await numbers(streams.read(part, EARLIEST)) == [0, 1, 2, 3]
        assert len(asked.of_the_stream()) == 1 and part.chain.segments[1].ledger_id not in part.ledgers

    simulated(story)


def test_a_closed_ledger_is_asked_for_once_and_the_open_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        await stream.start()
        await stream.add(1)
        planner = StreamReading(stream.client, stream.node, stream._no_cursor)
        first = await planner.known(EARLIEST, LATEST)
        await stream.add(1)
        asked = Asked(stream, monkeypatch)
        second = await planner.known(EARLIEST, LATEST)
        [closed, growing] = (segment.ledger_id for segment in second.chain.segments)
        assert sum(f"L{closed:04d}" in path for path in asked.paths) == 0
        assert second.ledgers[growing].last > first.ledgers[growing].last

    simulated(story)


def test_a_view_answers_from_the_time_when_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner asks for one end, some places, their numbers and splits, a hundred times a minute."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(2, 2)
        await stream.start()
        for count in (2, 2):
            await stream.add(count)
        planner = StreamReading(stream.client, stream.node, stream._no_cursor)
        await (await planner.view()).known(EARLIEST, LATEST)
        view = await planner.view()
        asked = Asked(stream, monkeypatch)
        await stream.add(1)
        before = len(asked.of_the_stream())
        assert await view.end() == StreamEnd(Position(2, 2, 0), 8)
        place = await view.find(AtSeqNo(5))
        assert (place, await view.seq_no(place)) == (Position(2, 0, 1), 5)
        parts = await view.splits(EARLIEST, LATEST, target=4)
        assert [await view.seq_no(part.stop) for part in parts][-1] == 8
        assert len((await view.known(EARLIEST, LATEST)).ledgers) == 2
        assert len(asked.of_the_stream()) == before
        assert (await planner.end()).seq_no == 9

    simulated(story)
