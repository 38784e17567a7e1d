"""What a writer keeps up of its stream's end."""

from __future__ import annotations

from segments.entries.sections import EntryBatch
from segments.position import Position
from segments.write.state.write_state import WriteState


def test_every_push_of_a_batch_is_confirmed_where_its_records_stand() -> None:
    state = WriteState()
    table = state.producers
    assert not state.has_producers
    table.open("p", 1)
    table.push("p", 1, 0, 1)
    table.push("p", 1, 1, 2)
    state.on_batches([EntryBatch(4), EntryBatch(3, "p", 1, 0), EntryBatch(1, "q", 1, 9)], 2, 6, 50)
    known = table.get("p")
    assert known is not None
    assert (known.last_sequence, list(known.pushed)) == (2, [])
    assert [known.find(number) for number in range(3)] == [Position(2, 6, slot) for slot in (4, 5, 6)]
    assert state.has_producers


def test_a_stream_that_has_forgotten_producers_still_has_to_say_so() -> None:
    state = WriteState()
    state.producers.forgotten = 1
    assert state.has_producers
